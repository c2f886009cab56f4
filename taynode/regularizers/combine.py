"""Several regularizers as one."""

from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu

from .._types import Args, Key, Scalar, VectorField, Y
from .base import is_regularizer


def check_regularizers(term: Any, regularizer: Any) -> None:
    """Refuse what cannot be regularized, naming the argument."""
    if not isinstance(term, dfx.ODETerm):
        raise TypeError(
            f"`regularizer` needs `terms` to be an `ODETerm`, got `{type(term).__name__}`. Speed "
            "regularization of stochastic, controlled or split differential equations is not "
            "defined here."
        )
    leaves = jtu.tree_leaves(regularizer, is_leaf=is_regularizer)
    for leaf in leaves:
        if not is_regularizer(leaf):
            hint = f" Did you mean `{leaf.__name__}(...)`?" if isinstance(leaf, type) else ""
            raise TypeError(
                "`regularizer` must be a regularizer such as `TotalDerivative(order=2)`, or a "
                f"pytree of them, got {leaf!r}.{hint}"
            )
    if not leaves:
        raise ValueError("`regularizer` is an empty pytree; pass `None` for a plain solve.")


def initial_states(regularizer: Any, y0: Y, args: Args, key: Key | None) -> list[Any]:
    """What each regularizer draws or computes once per solve."""
    leaves = jtu.tree_leaves(regularizer, is_leaf=is_regularizer)
    keys = [None] * len(leaves) if key is None else list(jax.random.split(key, len(leaves)))
    return [leaf.init(y0, args, key=k) for leaf, k in zip(leaves, keys, strict=True)]


def combine_rates(
    regularizers: Any, vector_field: VectorField, t: Scalar, y: Y, args: Args, states: Any
) -> tuple[Y, Any]:
    """The slope, and a pytree of rates like that of the regularizers."""
    leaves, treedef = jtu.tree_flatten(regularizers, is_leaf=is_regularizer)
    results = [
        regularizer.rate(vector_field, t, y, args, state)
        for regularizer, state in zip(leaves, states, strict=True)
    ]
    # The slopes are equal, and the compiler merges what computes them.
    rates = [jtu.tree_map(_as_float, rate) for _, rate in results]
    return results[0][0], treedef.unflatten(rates)


def _as_float(rate: Any) -> Any:
    rate = jnp.asarray(rate)
    inexact = jnp.issubdtype(rate.dtype, jnp.inexact)
    return rate if inexact else rate.astype(jnp.result_type(float))


def finalize(regularizer: Any, integrals: Any, t0: Scalar, t1: Scalar) -> Any:
    """The penalties, from the integrals of the rates, which are real."""
    integrals = jtu.tree_map(jnp.real, integrals)
    leaves, treedef = jtu.tree_flatten(regularizer, is_leaf=is_regularizer)
    integrals = treedef.flatten_up_to(integrals)
    return treedef.unflatten(
        leaf.finalize(integral, t0, t1) for leaf, integral in zip(leaves, integrals, strict=True)
    )
