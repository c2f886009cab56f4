"""The functions a user calls: Taylor expansions of functions along curves and of ODE solutions."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from . import rules as rules
from .program import is_inexact, Program
from .series import Coefficient, divide, instantiate, scale
from .sweep import Sweep


def solution_derivatives(
    vector_field: Callable[[Any, Any, Any], Any], t: Any, y: Any, args: Any = None, *, order: int
) -> list[Any]:
    r"""Time derivatives of the solution of dy/dt = f(t, y, args) through the point `(t, y)`.

    All of them come out of one sweep of the vector field per order: K derivatives contain every
    matrix product of the vector field exactly K times. Time is part of the expansion, so these are
    total derivatives, df/dt included.

    **Arguments:**

    - `vector_field`: a function `f(t, y, args)`, as for `diffrax.ODETerm`.
    - `t`: the time, a real scalar.
    - `y`: the state, any pytree of floating-point or complex arrays.
    - `args`: passed to the vector field, any pytree. The result can be differentiated with respect
        to it, and to whatever else the vector field closes over.
    - `order`: how many derivatives, K; a Python integer, at least 1.

    **Returns:**

    The list `[dy/dt, ..., d^K y/dt^K]` of pytrees like `y`, without factorials. The first is
    `vector_field(t, y, args)` itself, so a caller need not evaluate that again.
    """
    rates = _sweep_solution(vector_field, t, y, args, order)
    return [
        jtu.tree_map(lambda x, k=k: scale(x, math.factorial(k)), rate)
        for k, rate in enumerate(rates)
    ]


def taylor_coefficients(
    vector_field: Callable[[Any, Any, Any], Any], t: Any, y: Any, args: Any = None, *, order: int
) -> list[Any]:
    """Taylor coefficients of the solution of dy/dt = f(t, y, args) through the point `(t, y)`.

    **Arguments:** as for `solution_derivatives`.

    **Returns:**

    The list `[y, dy/dt, ..., (d^K y/dt^K) / K!]` of pytrees like `y`, so that the solution is their
    sum with powers of the time step.
    """
    rates = _sweep_solution(vector_field, t, y, args, order)
    return [
        jtu.tree_map(jnp.asarray, y),
        *(jtu.tree_map(lambda x, k=k: divide(x, k + 1), rate) for k, rate in enumerate(rates)),
    ]


def _sweep_solution(vector_field, t, y, args, order) -> list[Any]:
    """The normalized coefficients 0 .. order - 1 of the vector field along the solution."""
    _check_order(order)
    t = jnp.asarray(t)
    if not is_inexact(t):
        t = t.astype(jnp.result_type(float))
    if t.ndim:
        raise ValueError(f"`t` must be a scalar, got an array of shape {t.shape}.")
    y = jtu.tree_map(jnp.asarray, y)
    leaves, treedef = jtu.tree_flatten(y)
    for path, leaf in jtu.tree_leaves_with_path(y):
        if not is_inexact(leaf):
            raise TypeError(
                f"`y` must consist of floating-point or complex arrays, got {leaf.dtype} at "
                f"`y{jtu.keystr(path)}`. Put constants into `args`."
            )
    closed, out_shape = jax.make_jaxpr(
        lambda t, y: vector_field(t, y, args), return_shape=True
    )(t, y)
    _check_like_state(y, out_shape)

    num_consts = len(closed.consts)
    program = Program(closed.jaxpr, [False] * num_consts + [True] * (1 + len(leaves)))
    sweep = Sweep(program)
    inputs: list[Coefficient] = [*closed.consts, t, *leaves]
    rates = []
    for k in range(order):
        rate = [
            None if r is None else _cast(instantiate(r, y), y.dtype)
            for r, y in zip(sweep.advance(inputs), leaves, strict=True)
        ]
        rates.append(rate)
        # x_[k+1] = f_[k] / (k+1); time moves at unit speed.
        time = jnp.ones_like(t) if k == 0 else None
        inputs = [None] * num_consts + [time] + [divide(r, k + 1) for r in rate]
    return [
        treedef.unflatten(instantiate(r, y) for r, y in zip(rate, leaves, strict=True))
        for rate in rates
    ]


def _cast(x, dtype):
    # `astype` to the same dtype would make a weakly typed array strong.
    return x if x.dtype == dtype else x.astype(dtype)


def _check_order(order: int) -> None:
    if not isinstance(order, int) or isinstance(order, bool) or order < 1:
        raise ValueError(f"`order` must be a Python integer of at least 1, got {order!r}.")


def _check_like_state(y: Any, out: Any) -> None:
    if jtu.tree_structure(out) != jtu.tree_structure(y):
        raise ValueError(
            "`vector_field` must return a pytree like `y`: expected "
            f"{jtu.tree_structure(y)}, got {jtu.tree_structure(out)}."
        )
    for (path, leaf), rate in zip(
        jtu.tree_leaves_with_path(y), jtu.tree_leaves(out), strict=True
    ):
        if leaf.shape != rate.shape:
            raise ValueError(
                f"`vector_field` must return arrays shaped like `y`: at `y{jtu.keystr(path)}` "
                f"expected {leaf.shape}, got {rate.shape}."
            )


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Any],
    *,
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """Taylor-mode differentiation of a function along given curves.

    A replacement for `jax.experimental.jet.jet`: same arguments, same results, any JAX program.

    **Arguments:**

    - `fun`: the function.
    - `primals`: its positional arguments, a tuple or list of arrays or pytrees of arrays.
    - `series`: for each argument the list of derivatives 1..K of the curve it moves on; for a pytree
        argument either a list of K such pytrees, or a pytree whose leaves are lists of length K.
    - `factorial_scaled`: if False, `series` and the result are Taylor coefficients (derivatives
        divided by k!) instead of derivatives.

    **Returns:**

    `(primals_out, series_out)`: the value of the function, and a pytree like it, in which each leaf
    is replaced by the list of its derivatives 1..K along the curve.
    """
    primals, series = tuple(primals), tuple(series)
    leaves, treedef = jtu.tree_flatten(primals)
    leaves = [jnp.asarray(leaf) if _is_numeric(leaf) else leaf for leaf in leaves]
    terms, order = _flatten_series(primals, series)

    closed, out_shape = jax.make_jaxpr(fun, return_shape=True)(*treedef.unflatten(leaves))
    moving = [is_inexact(leaf) for leaf in leaves]
    num_consts = len(closed.consts)
    program = Program(closed.jaxpr, [False] * num_consts + moving)
    sweep = Sweep(program)
    values = [sweep.advance([*closed.consts, *leaves])]
    for k in range(1, order + 1):
        factor = math.factorial(k) if factorial_scaled else 1
        coefficients = [
            divide(_as_term(term[k - 1], leaf, k), factor) if moves else None
            for term, leaf, moves in zip(terms, leaves, moving, strict=True)
        ]
        rate = sweep.advance([None] * num_consts + coefficients)
        values.append([scale(r, factor) for r in rate])
    out_tree = jtu.tree_structure(out_shape)
    avals = jtu.tree_leaves(out_shape)
    series_out = [
        [_zero_or(values[k][i], aval) for k in range(1, order + 1)] for i, aval in enumerate(avals)
    ]
    return out_tree.unflatten(values[0]), out_tree.unflatten(series_out)


def _is_numeric(leaf: Any) -> bool:
    return isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic)


def _zero_or(x: Coefficient, aval: Any) -> Any:
    return instantiate(x, aval)


def _as_term(term: Any, leaf: Any, k: int) -> Any:
    """A given coefficient in the dtype of its argument; a scalar stands for a constant array."""
    term = jnp.asarray(term)
    if term.shape not in ((), leaf.shape):
        raise ValueError(
            f"`series` must have the shape of its argument, {leaf.shape}; term {k} has {term.shape}."
        )
    return _cast(jnp.broadcast_to(term, leaf.shape), leaf.dtype)


def _flatten_series(primals: tuple, series: tuple) -> tuple[list[list[Any]], int]:
    """For each leaf of the arguments its list of terms, and how many terms there are."""
    if len(primals) != len(series):
        raise ValueError(
            f"`series` must have an entry for each argument: got {len(series)} for {len(primals)}."
        )
    flat: list[list[Any]] = []
    for i, (primal, terms) in enumerate(zip(primals, series, strict=True)):
        treedef = jtu.tree_structure(primal)
        if jtu.treedef_is_leaf(treedef):
            flat.append(list(terms))
            continue
        by_leaf = jtu.tree_structure(terms, is_leaf=lambda x: x is not terms and _is_terms(x))
        if by_leaf == treedef:
            flat.extend(list(leaf) for leaf in treedef.flatten_up_to(terms))
        elif all(jtu.tree_structure(term) == treedef for term in terms):
            flat.extend(list(leaf) for leaf in zip(*map(jtu.tree_leaves, terms), strict=True))
        else:
            raise ValueError(
                f"`series[{i}]` must be a list of pytrees like `primals[{i}]`, or a pytree like it "
                f"with a list of terms at each leaf; got {jtu.tree_structure(terms)} for {treedef}."
            )
    orders = {len(terms) for terms in flat}
    if len(orders) > 1:
        raise ValueError(f"`series` must have one length for all arguments, got {sorted(orders)}.")
    return flat, orders.pop() if orders else 0


def _is_terms(x: Any) -> bool:
    return isinstance(x, list | tuple) and all(jtu.all_leaves([leaf]) for leaf in x)
