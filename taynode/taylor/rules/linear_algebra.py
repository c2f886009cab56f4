"""Linear solves: every order is one more solve with the matrix of order 0.

From A x = b follows A_[0] x_[k] = b_[k] - (A_[1] x_[k-1] + ... + A_[k] x_[0]). Decompositions (lu,
qr, eigh, svd, ...) follow from their JVP rules, which are built of these solves.
"""

import jax.numpy as jnp
from jax import lax
from jax.extend.core import primitives as p

from ..expansion import Expansion
from ..program import Equation, Program
from ..registry import ANY, rule_for, RULES
from ..series import add, instantiate, subtract


@rule_for(p.cholesky_p, owns_primal=True)
def _cholesky(equation, k, inputs, outputs, memory):
    # The primitive leaves arbitrary numbers above the diagonal, but its JVP rule assumes zeros.
    if k == 0:
        return [jnp.tril(equation.bind(inputs[0][0])[0])]
    return RULES[ANY].step(equation, k, inputs, outputs, memory)


@rule_for(p.triangular_solve_p, linear=lambda equation: equation.active == (False, True))
def _triangular_solve(equation, k, inputs, outputs, memory):
    (a, b), (x,) = inputs, outputs
    total = None
    for j in range(1, k + 1):
        if a[j] is not None and x[k - j] is not None:
            matrix = _effective_matrix(a[j], equation.params)
            left = equation.params["left_side"]
            factors = (matrix, x[k - j]) if left else (x[k - j], matrix)
            total = add(total, jnp.matmul(*factors, precision=lax.Precision.HIGHEST))
    rest = subtract(b[k], total)
    return [None] if rest is None else equation.bind(a[0], rest)


def _effective_matrix(a, params):
    """Return the matrix that the solve reads from `a`."""
    offset = 1 if params["unit_diagonal"] else 0
    a = jnp.tril(a, -offset) if params["lower"] else jnp.triu(a, offset)
    a = jnp.swapaxes(a, -1, -2) if params["transpose_a"] else a
    return jnp.conj(a) if params["conjugate_a"] else a


def _matrix_is_active(equation: Equation) -> bool:
    return any(equation.active[: equation.params["const_lengths"].matvec])


@rule_for(p.linear_solve_p, linear=lambda equation: not _matrix_is_active(equation))
def _linear_solve(equation, k, inputs, outputs, memory):
    lengths = equation.params["const_lengths"]
    num_consts = sum(lengths)
    consts, rhs = inputs[:num_consts], inputs[num_consts:]
    # Auxiliary outputs of the solver follow the solution. As in JAX, they are constant.
    x, no_aux = outputs[: len(rhs)], [None] * (len(outputs) - len(rhs))
    rest = [b[k] for b in rhs]
    if _matrix_is_active(equation):
        product = _product_without_last(equation, k, consts[: lengths.matvec], x, memory)
        rest = [subtract(b, r) for b, r in zip(rest, product, strict=True)]
    if all(r is None for r in rest):
        return [None] * len(outputs)
    rest = [instantiate(r, aval) for r, aval in zip(rest, equation.out_avals, strict=False)]
    return equation.bind(*(c[0] for c in consts), *rest)[: len(rhs)] + no_aux


def _product_without_last(equation, k, consts, x, memory):
    """Return coefficient k of A x with x_[k] taken as zero.

    The expansion of the product is recorded up to order k - 2. Its order k - 1 is completed here,
    since x_[k-1] is known only now.
    """
    active = (*equation.active[: len(consts)], *(True for _ in x))
    program = equation.derive("matvec", lambda: Program(equation.params["jaxprs"].matvec, active))
    shared = dict(zip(program.inputs, consts, strict=False))
    expansion = Expansion.restore(program, [memory[j] for j in range(k - 1)], shared)
    given = [None] * len(consts)
    expansion.advance(given + [y[k - 1] for y in x])
    memory[k - 1] = expansion.record()
    return expansion.advance(given + [None] * len(x))
