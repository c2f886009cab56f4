"""Taylor expansion of a function along given curves."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, PyTree

from . import rules as rules
from .expansion import Expansion
from .program import is_inexact, Program
from .series import cast, divide, instantiate, scale


def jet(
    fun: Callable[..., PyTree],
    primals: Any,
    series: Any,
    factorial_scaled: bool = True,
) -> tuple[PyTree, PyTree]:
    """Taylor-mode differentiation of a function along given curves.

    A replacement for `jax.experimental.jet.jet`: same arguments, same results, any JAX program.

    **Arguments:**

    - `fun`: the function.
    - `primals`: its positional arguments, a tuple or list of arrays or pytrees of arrays.
    - `series`: for each argument the list of derivatives 1..K of the curve on which it moves. For
        a pytree argument either a list of K such pytrees, or a pytree whose leaves are lists of
        length K. An integer or boolean array that moves is converted to floating point before it
        is passed to `fun`. If all its terms are known to be zero, it is not converted.
    - `factorial_scaled`: if False, `series` and the result are Taylor coefficients (derivatives
        divided by k!) instead of derivatives.

    **Returns:**

    `(primals_out, series_out)`: the value of the function, and a pytree like it, in which each leaf
    is replaced by the list of its derivatives 1..K along the curve.
    """
    for name, argument in (("primals", primals), ("series", series)):
        if not isinstance(argument, list | tuple):
            raise TypeError(
                f"`{name}` must be a tuple or list, one entry for each argument, got {argument!r}."
            )
    primals, series = tuple(primals), tuple(series)
    terms, order = _flatten_series(primals, series)
    paths_and_leaves, treedef = jtu.tree_flatten_with_path(primals)
    leaves = [
        _as_moving(path, leaf, leaf_terms)
        for (path, leaf), leaf_terms in zip(paths_and_leaves, terms, strict=True)
    ]

    closed, out_shape = jax.make_jaxpr(fun, return_shape=True)(*treedef.unflatten(leaves))
    active = [is_inexact(leaf) for leaf in leaves]
    expansion = Expansion(Program(closed, active))
    values: list[Any] = [[jnp.asarray(x) for x in expansion.advance(leaves)]]
    for k in range(1, order + 1):
        factor = math.factorial(k) if factorial_scaled else 1
        coefficients = [
            divide(_as_term(term[k - 1], leaf, k), factor) if is_active else None
            for term, leaf, is_active in zip(terms, leaves, active, strict=True)
        ]
        values.append([scale(r, factor) for r in expansion.advance(coefficients)])
    out_tree = jtu.tree_structure(out_shape)
    avals = closed.out_avals
    series_out = [
        [instantiate(values[k][i], aval) for k in range(1, order + 1)]
        for i, aval in enumerate(avals)
    ]
    return out_tree.unflatten(values[0]), out_tree.unflatten(series_out)


def _as_moving(path: tuple, leaf: Any, terms: list[Any]) -> Any:
    """Convert an argument to an array of a dtype in which it can move along its curve."""
    if isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic):
        leaf = jnp.asarray(leaf)
    if is_inexact(leaf) or all(map(_is_known_zero, terms)):
        return leaf
    if not (jnp.issubdtype(leaf.dtype, jnp.integer) or leaf.dtype == bool):
        raise TypeError(
            f"`series` must be zero for `primals{jtu.keystr(path)}`: an array of {leaf.dtype} "
            "cannot move along a curve."
        )
    if leaf.weak_type:
        return 1.0 * leaf
    inexact = [term for term in terms if is_inexact(jnp.asarray(term))]
    return leaf.astype(jnp.result_type(*inexact) if inexact else float)


def _is_known_zero(term: Any) -> bool:
    if getattr(term, "dtype", None) == jax.dtypes.float0:
        return True
    return not isinstance(term, Tracer) and not np.any(term)


def _as_term(term: ArrayLike, leaf: Array, k: int) -> Array:
    """Convert a term to the dtype and shape of its argument; a scalar is broadcast."""
    term = jnp.asarray(term)
    if term.shape not in ((), leaf.shape):
        raise ValueError(
            f"`series` must have the shapes of `primals`: at order {k} expected {leaf.shape}, "
            f"got {term.shape}."
        )
    if jnp.iscomplexobj(term) and not jnp.iscomplexobj(leaf):
        raise TypeError(
            f"`series` must be real for a real argument: at order {k} got {term.dtype} for "
            f"{leaf.dtype}. Make the argument complex."
        )
    return cast(jnp.broadcast_to(term, leaf.shape), leaf.dtype)


def _flatten_series(primals: tuple, series: tuple) -> tuple[list[list[Any]], int]:
    """Return the list of terms of each leaf of the arguments, and the length of these lists."""
    if len(primals) != len(series):
        raise ValueError(
            f"`series` must have an entry for each argument: got {len(series)} for {len(primals)}."
        )
    flat: list[list[Any]] = []
    for i, (primal, terms) in enumerate(zip(primals, series, strict=True)):
        treedef = jtu.tree_structure(primal)
        if jtu.treedef_is_leaf(treedef):
            if not isinstance(terms, list | tuple):
                raise TypeError(f"`series[{i}]` must be a list of terms, got {terms!r}.")
            flat.append(list(terms))
            continue
        if _has_lists_at_leaves(terms, treedef):
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


def _has_lists_at_leaves(terms: Any, treedef: Any) -> bool:
    try:
        at_leaves = treedef.flatten_up_to(terms)
    except (ValueError, TypeError, KeyError):
        return False
    return all(
        isinstance(x, list | tuple) and all(jtu.all_leaves([term]) for term in x) for x in at_leaves
    )
