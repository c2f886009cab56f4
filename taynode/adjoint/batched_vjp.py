"""Vector-Jacobian products that sum over a batch at once."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.custom_batching import custom_vmap
from jaxtyping import Array, PyTree


def vjp_of(
    function: Callable[[PyTree, PyTree, PyTree], PyTree],
) -> Callable[[PyTree, PyTree, PyTree, PyTree], tuple[PyTree, PyTree]]:
    """The vjp of a function of states, parameters and other arguments, in the first two.

    Under `jax.vmap`, JAX computes a cotangent of the parameters for each sample, and sums them when
    all is done. This one sums in each call, which is a single matrix product for a dense layer.

    **Returns:**

    A function of the three arguments and the cotangents of the outputs.
    """

    def plain(states, parameters, others, cotangents):
        _, vjp = jax.vjp(lambda *x: function(*x, others), states, parameters)
        return vjp(cotangents)

    pull = custom_vmap(plain)

    @pull.def_vmap
    def _(axis_size, in_batched, states, parameters, others, cotangents):
        of_states, of_parameters, of_others, of_cotangents = in_batched
        if not any(jtu.tree_leaves(in_batched)):
            # JAX asks so for a batch of tangents.
            return plain(states, parameters, others, cotangents), (of_states, of_parameters)
        axis = lambda batched: 0 if batched else None
        axes = jtu.tree_map(axis, (of_parameters, of_others))
        batch = jax.vmap(function, in_axes=(0, *axes), axis_size=axis_size)
        # Each sample has a cotangent of its own, even if states are equal.
        spread = lambda tree, batched: jtu.tree_map(_spread(axis_size), tree, batched)
        states, cotangents = spread(states, of_states), spread(cotangents, of_cotangents)
        every = jtu.tree_map(lambda _: True, of_states)
        return vjp_of(batch)(states, parameters, others, cotangents), (every, of_parameters)

    return pull


def _spread(axis_size: int) -> Callable[[Array, bool], Array]:
    def spread(x: Any, batched: bool) -> Array:
        return x if batched else jnp.broadcast_to(x, (axis_size, *jnp.shape(x)))

    return spread
