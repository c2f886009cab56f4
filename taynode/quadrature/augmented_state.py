"""The state with its running penalty, and the vector field that moves both."""

from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu

from .._types import Args, RealScalar, RealScalarLike, Y
from ..regularizers import AbstractRegularizer


class AugmentedState(NamedTuple):
    """A state and the penalty that its path has collected."""

    y: Y
    penalty: Any

    @property
    def plain_part(self) -> Any:
        """The state."""
        return self.y


class AugmentedField(eqx.Module):
    """The vector field of the pair (y, penalty). What it holds are pytrees, never closures.

    It keeps the term of the state, which brings what the vector field returns to the shape and type
    of the state.
    """

    term: dfx.ODETerm
    regularizer: AbstractRegularizer
    states: Any

    @property
    def plain_part(self) -> Any:
        """The vector field of the state."""
        return self.term.vector_field

    def __call__(self, t: RealScalarLike, state: tuple[Y, Any], args: Args) -> tuple[Y, Any]:
        """The slope of the state and the rate of the penalty."""
        y, penalty = state
        slope, rates = self.regularizer.rate(self.term.vf, t, y, args, self.states)
        if penalty is not None:
            rates = jtu.tree_map(lambda r, p: r.astype(jnp.result_type(p)), rates, penalty)
        pair = slope, rates
        return AugmentedState(*pair) if isinstance(state, AugmentedState) else pair


def zero_penalty(field: AugmentedField, t: RealScalarLike, y: Y, args: Args) -> Any:
    """A penalty of zero, of the shape that the rates have.

    Runge-Kutta methods of diffrax want one type of numbers, so it is of the type of the state.
    """
    evaluate = lambda t, y, args: field(t, (y, None), args)
    _, rates = eqx.filter_eval_shape(evaluate, t, y, args)
    zero = nothing_of((field, y, args))

    def like(rate):
        with jax.numpy_dtype_promotion("standard"):
            dtype = jnp.result_type(rate.dtype, jnp.result_type(t), *jtu.tree_leaves(y))
        return jnp.zeros(rate.shape, dtype) + zero.astype(dtype)

    return jtu.tree_map(like, rates)


def nothing_of(tree: Any) -> RealScalar:
    """A zero that belongs to all arrays of a pytree: under `jax.vmap`, each sample has its own.

    A zero that depends on nothing would be shared by all samples, and so would be its cotangent.
    """
    leaves = jtu.tree_leaves(eqx.filter(tree, eqx.is_inexact_array))
    empty = [jnp.sum(jnp.real(leaf).reshape(-1)[:0]).astype(float) for leaf in leaves]
    return sum(empty, jnp.zeros((), float))
