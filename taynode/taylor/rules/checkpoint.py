"""`jax.checkpoint`: the reverse pass computes the body again instead of storing its values.

In the forward pass each order continues from the values that the lower orders recorded, so the body
is evaluated once per order. The records must not become residuals of the reverse pass, or the
checkpoint would save nothing. Coefficient k is therefore differentiated as a function of the
coefficients of the inputs alone, which computes the orders 0..k of the body. This function is
checkpointed, with the policy and the `prevent_cse` of the original.

The reverse pass then stores the coefficients of the inputs only. For K orders it evaluates the body
K (K + 1) / 2 times. Values that the policy saves are saved by each order that depends on them; XLA
merges the copies.
"""

import functools as ft
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax import Array
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import primitives as p

from ..expansion import Expansion, Record
from ..program import Equation, is_inexact, Program
from ..registry import rule_for
from ..series import Coefficient, Series


def _activity(equation: Equation) -> list[bool]:
    return Program(equation.params["jaxpr"], equation.active).output_activity


def _body(equation: Equation, effects: bool = True) -> Program:
    return equation.derive(
        f"body, effects {effects}",
        lambda: Program(
            equation.params["jaxpr"],
            equation.active,
            expand=equation.expanded_outputs,
            effects=effects,
        ),
    )


@rule_for(
    p.remat_p,
    owns_primal=True,
    activity=_activity,
    expanded_inputs=lambda equation: _body(equation).expanded_inputs,
)
def _checkpoint(equation, k, inputs, outputs, memory):
    body = _body(equation)
    coefficients = [
        [u[j] for j in range(k + 1)] if expanded else [u[0]]
        for u, expanded in zip(inputs, body.expanded_inputs, strict=True)
    ]
    advance = _differentiable_from_inputs(
        ft.partial(_advance, body),
        ft.partial(_from_inputs, _body(equation, effects=False), k),
        policy=equation.params["policy"],
        prevent_cse=_any(equation.params["prevent_cse"]),
    )
    values, memory[k] = advance(coefficients, [memory[j] for j in range(k)])
    return values


def _any(prevent_cse: bool | tuple[bool, ...]) -> bool:
    # Given for each argument, it cannot be passed on: coefficients are more arguments.
    return prevent_cse if isinstance(prevent_cse, bool) else any(prevent_cse)


def _advance(
    program: Program, coefficients: list[list[Any]], records: list[Record]
) -> tuple[list[Array | None], Record]:
    """Compute the next order from the records of all lower orders."""
    expansion = Expansion.restore(program, records, _shared(program, coefficients))
    values = [None if x is None else jnp.asarray(x) for x in expansion.advance()]
    return values, expansion.record()


def _from_inputs(program: Program, order: int, coefficients: list[list[Any]]) -> list[Coefficient]:
    """Compute the orders 0..order, and return the last."""
    expansion = Expansion(program, _shared(program, coefficients))
    for _ in range(order):
        expansion.advance()
    return expansion.advance()


def _shared(program: Program, coefficients: list[list[Any]]) -> dict[int, Series]:
    series = [
        Series(u, constant=not expanded)
        for u, expanded in zip(coefficients, program.expanded_inputs, strict=True)
    ]
    return dict(zip(program.inputs, series, strict=True))


def _differentiable_from_inputs(
    advance: Callable, from_inputs: Callable, **options: Any
) -> Callable:
    """Return `advance(coefficients, records)` with the derivative of `from_inputs(coefficients)`.

    The records are constants for this derivative. `options` are those of `jax.checkpoint`.
    """

    @jax.custom_jvp
    def function(coefficients, records):
        return advance(coefficients, records)

    def jvp(primals, tangents):
        values, record = function(*primals)
        coefficients, treedef = jtu.tree_flatten(primals[0])
        tangents = jtu.tree_leaves(tangents[0])
        varied = [i for i, x in enumerate(tangents) if _is_nonzero(x)]

        # Only the tangents are returned, so that the forward pass computes nothing here.
        def pushforward(coefficients, tangents):
            def fun(varied_coefficients):
                merged = dict(enumerate(coefficients))
                merged |= dict(zip(varied, varied_coefficients, strict=True))
                return _inexact(from_inputs(treedef.unflatten(merged.values())))

            return jax.jvp(fun, ([coefficients[i] for i in varied],), (tangents,))[1]

        results = iter(
            jax.checkpoint(pushforward, **options)(coefficients, [tangents[i] for i in varied])
        )
        value_tangents = [
            None if x is None else next(results) if is_inexact(x) else _zero(x) for x in values
        ]
        return (values, record), (value_tangents, jtu.tree_map(_zero, record))

    function.defjvp(jvp, symbolic_zeros=True)
    return function


def _is_nonzero(tangent: Any) -> bool:
    return not isinstance(tangent, SymbolicZero) and tangent.dtype != jax.dtypes.float0


def _inexact(values: list[Coefficient]) -> list[Array]:
    arrays = [jnp.asarray(x) for x in values if x is not None]
    return [x for x in arrays if is_inexact(x)]


def _zero(x: Any) -> SymbolicZero:
    return SymbolicZero.from_primal_value(x)
