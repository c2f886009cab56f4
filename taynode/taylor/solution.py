"""Taylor expansion of the solution of an ordinary differential equation."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.extend.core import ClosedJaxpr
from jaxtyping import Array, ArrayLike, PyTree

from .._types import Args, Arrays, RealScalarLike, VectorField, Y
from . import rules as rules
from .expansion import Expansion
from .program import is_inexact, Program
from .series import cast, Coefficient, divide, instantiate, scale


def solution_derivatives(
    vector_field: VectorField, t: ArrayLike, y: Arrays, args: Args = None, *, order: int
) -> list[Arrays]:
    r"""Time derivatives of the solution of dy/dt = f(t, y, args) through the point `(t, y)`.

    The vector field is evaluated once per order: K derivatives contain each product with a matrix
    of parameters exactly K times. (A product of two arrays that both depend on time costs k + 1
    products at order k, and a `while` loop computes its lower orders again.) Time is part of the
    expansion, so these are total derivatives, which include df/dt.

    The derivatives honor `jax.custom_jvp`. A `jax.custom_vjp` function keeps its rule for dy/dt
    itself; its higher derivatives are those of its body. A function under `jax.checkpoint` is
    computed again, at all orders, when the derivatives are differentiated in reverse mode.

    **Arguments:**

    - `vector_field`: a function `f(t, y, args)`, as for `diffrax.ODETerm`.
    - `t`: the time, a real scalar.
    - `y`: the state, any pytree of floating-point or complex arrays.
    - `args`: any pytree, passed to the vector field. The result can be differentiated with respect
        to it, and to anything that the vector field closes over.
    - `order`: the number K of derivatives; a Python integer, at least 1.

    **Returns:**

    The list `[dy/dt, ..., d^K y/dt^K]` of pytrees like `y`, without factorials. The first is
    `vector_field(t, y, args)`.
    """
    rates = _rates(vector_field, t, y, args, order)
    return [
        jtu.tree_map(lambda x, k=k: scale(x, math.factorial(k)), rate)
        for k, rate in enumerate(rates)
    ]


def taylor_coefficients(
    vector_field: VectorField, t: ArrayLike, y: Arrays, args: Args = None, *, order: int
) -> list[Arrays]:
    """Taylor coefficients of the solution of dy/dt = f(t, y, args) through the point `(t, y)`.

    **Arguments:** as for `solution_derivatives`.

    **Returns:**

    The list `[y, dy/dt, ..., (d^K y/dt^K) / K!]` of pytrees like `y`, so that the solution is their
    sum with powers of the time step.
    """
    rates = _rates(vector_field, t, y, args, order)
    return [
        jtu.tree_map(jnp.asarray, y),
        *(jtu.tree_map(lambda x, k=k: divide(x, k + 1), rate) for k, rate in enumerate(rates)),
    ]


def derivative_of_part(
    vector_field: VectorField,
    t: RealScalarLike,
    y: Y,
    args: Args,
    *,
    order: int,
    where: Callable[[Y], Arrays],
) -> tuple[Y, Arrays]:
    """Return dy/dt of the whole state, and `where` of its derivative of this order.

    Above the first order, only this part of the state and its dependencies are computed.
    """
    rates = _rates(vector_field, t, y, args, order, where)
    part = where(rates[-1])
    return rates[0], jtu.tree_map(lambda x: scale(x, math.factorial(order - 1)), part)


def check_vector_field(vector_field: Any) -> None:
    """Raise an error unless a vector field is a function."""
    if not callable(vector_field):
        raise TypeError(
            "`vector_field` must be a function `f(t, y, args)`, got "
            f"`{type(vector_field).__name__}`. If it is a term, pass its vector field, `term.vf`."
        )


def _rates(vector_field, t, y, args, order, where=None) -> list[Arrays]:
    """Return the coefficients 0..order - 1 of the vector field along the solution.

    With `where`, leaves on which this part of the state does not depend are zero above order 0.
    """
    _check_order(order)
    check_vector_field(vector_field)
    program, inputs, treedef = program_of_field(vector_field, t, y, args, where)
    expansion = Expansion(program)
    t, *leaves = inputs
    avals = [jax.typeof(leaf) for leaf in leaves]
    coefficients: list[Coefficient] = [*inputs]
    rates = []
    for k in range(order):
        rate = [
            None if r is None else cast(jnp.asarray(r), aval.dtype)
            for r, aval in zip(expansion.advance(coefficients), avals, strict=True)
        ]
        rates.append(rate)
        # x_[k+1] = f_[k] / (k+1); time moves at unit speed.
        time = jnp.ones_like(t) if k == 0 else None
        coefficients = [time, *(divide(r, k + 1) for r in rate)]
    return [
        treedef.unflatten(instantiate(r, aval) for r, aval in zip(rate, avals, strict=True))
        for rate in rates
    ]


def program_of_field(
    vector_field: VectorField,
    t: ArrayLike,
    y: Arrays,
    args: Args,
    where: Callable[[Y], Arrays] | None = None,
) -> tuple[Program, list[Array], Any]:
    """Return the vector field as a program, its inputs (time and leaves), and their structure."""
    t = jnp.asarray(t)
    if t.ndim or jnp.iscomplexobj(t):
        raise ValueError(f"`t` must be a real scalar, got {t.dtype} of shape {t.shape}.")
    if not is_inexact(t):
        t = t.astype(jnp.result_type(float))
    y = jtu.tree_map(jnp.asarray, y)
    leaves, treedef = jtu.tree_flatten(y)
    for path, leaf in jtu.tree_leaves_with_path(y):
        if not is_inexact(leaf):
            raise TypeError(
                f"`y` must consist of floating-point or complex arrays, got {leaf.dtype} at "
                f"`y{jtu.keystr(path)}`. Put constants into `args`."
            )
    closed, out_shape = jax.make_jaxpr(lambda t, y: vector_field(t, y, args), return_shape=True)(
        t, y
    )
    _check_like_state(y, out_shape)
    wanted = range(len(leaves)) if where is None else _leaves_of(where, y)
    return _program_of(closed, wanted), [t, *leaves], treedef


def _leaves_of(where: Callable[[Y], Arrays], y: Y) -> list[int]:
    """Return the positions of the leaves of `y` that `where` reads."""
    closed = jax.make_jaxpr(lambda y: jtu.tree_leaves(where(y)))(y)
    used = {id(v) for eqn in closed.jaxpr.eqns for v in eqn.invars}
    used.update(id(v) for v in closed.jaxpr.outvars)
    return [i for i, v in enumerate(closed.jaxpr.invars) if id(v) in used]


def _program_of(closed: ClosedJaxpr, wanted: Iterable[int]) -> Program:
    """Return the vector field with those outputs expanded on which the wanted leaves depend.

    A leaf at one order depends on all leaves that the vector field reads for it at the order below.
    """
    expand = set(wanted)
    while True:
        program = Program(closed, [True] * len(closed.in_avals), expand=sorted(expand))
        _, *leaves = program.expanded_inputs
        needed = {i for i, is_needed in enumerate(leaves) if is_needed}
        if needed <= expand:
            return program
        expand |= needed


def _check_order(order: int) -> None:
    if not isinstance(order, int) or isinstance(order, bool) or order < 1:
        raise ValueError(f"`order` must be a Python integer of at least 1, got {order!r}.")


def _check_like_state(y: PyTree, out: PyTree) -> None:
    if jtu.tree_structure(out) != jtu.tree_structure(y):
        raise ValueError(
            "`vector_field` must return a pytree like `y`: expected "
            f"{jtu.tree_structure(y)}, got {jtu.tree_structure(out)}."
        )
    for (path, leaf), rate in zip(jtu.tree_leaves_with_path(y), jtu.tree_leaves(out), strict=True):
        if leaf.shape != rate.shape:
            raise ValueError(
                f"`vector_field` must return arrays shaped like `y`: at `y{jtu.keystr(path)}` "
                f"expected {leaf.shape}, got {rate.shape}."
            )
        if jnp.issubdtype(rate.dtype, jnp.complexfloating) and not jnp.iscomplexobj(leaf):
            raise TypeError(
                f"`vector_field` returns {rate.dtype} at `y{jtu.keystr(path)}`, which is "
                f"{leaf.dtype}. Make that part of `y` complex."
            )
