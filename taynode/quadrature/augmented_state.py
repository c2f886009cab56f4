"""The state with its running penalty, and the vector field of both."""

from typing import NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import PyTree

from .._types import Args, Rate, RealScalar, RealScalarLike, Y
from ..regularizers import AbstractRegularizer


class AugmentedState(NamedTuple):
    """A state, and the integral of the rate up to its time."""

    y: Y
    penalty: Rate

    @property
    def plain_part(self) -> PyTree:
        """The state."""
        return self.y


class AugmentedField(eqx.Module):
    """The vector field of the pair (y, penalty). Its fields are pytrees, never closures.

    It holds the term of the state, which converts slopes to the shapes and dtypes of the state.
    """

    term: dfx.ODETerm
    regularizer: AbstractRegularizer
    states: PyTree

    @property
    def plain_part(self) -> PyTree:
        """The vector field of the state, or its cotangent if this is a cotangent."""
        return self.term.vector_field

    def __call__(self, t: RealScalarLike, state: tuple[Y, Rate], args: Args) -> tuple[Y, Rate]:
        """Compute the slope of the state and the rate of the penalty."""
        y, penalty = state
        slope, rates = self.regularizer.rate(self.term.vf, t, y, args, self.states)
        if penalty is not None:
            rates = jtu.tree_map(lambda r, p: r.astype(jnp.result_type(p)), rates, penalty)
        pair = slope, rates
        return AugmentedState(*pair) if isinstance(state, AugmentedState) else pair


def zero_penalty(field: AugmentedField, t: RealScalarLike, y: Y, args: Args) -> Rate:
    """A penalty of zero with the shapes of the rates.

    It has the dtype of the state, since Runge-Kutta methods of diffrax need one dtype.
    """
    evaluate = lambda t, y, args: field(t, (y, None), args)
    _, rates = eqx.filter_eval_shape(evaluate, t, y, args)
    zero = nothing_of((field, y, args))

    def like(rate):
        with jax.numpy_dtype_promotion("standard"):
            dtype = jnp.result_type(rate.dtype, jnp.result_type(t), *jtu.tree_leaves(y))
        return jnp.zeros(rate.shape, dtype) + zero.astype(dtype)

    return jtu.tree_map(like, rates)


def nothing_of(tree: PyTree) -> RealScalar:
    """A zero that depends on all arrays of a pytree, so that `jax.vmap` gives one to each sample.

    All samples would share a constant zero, and its cotangent, too.
    """
    leaves = jtu.tree_leaves(eqx.filter(tree, eqx.is_inexact_array))
    empty = [jnp.sum(jnp.real(leaf).reshape(-1)[:0]).astype(float) for leaf in leaves]
    return sum(empty, jnp.zeros((), float))
