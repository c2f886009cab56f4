"""A penalty that has a derivative but no value."""

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import PyTree

from .._types import Args, Rate, RealScalarLike, Y
from .augmented_state import AugmentedField, AugmentedState, nothing_of


class CostateField(eqx.Module):
    """`AugmentedField` with a rate of zero, but with the derivatives of the true rate.

    The penalty never influences the state. So its gradient needs the rate at the points of the
    solve, but not its integral.
    """

    augmented: AugmentedField

    @property
    def plain_part(self) -> PyTree:
        """The vector field of the state, or its cotangent if this is a cotangent."""
        return self.augmented.plain_part

    def __call__(self, t: RealScalarLike, state: tuple[Y, Rate], args: Args) -> tuple[Y, Rate]:
        """Compute the slope of the state, and zero."""
        return _move_plain((self.augmented, t, state, args))


def _evaluate(
    operands: tuple[AugmentedField, RealScalarLike, tuple[Y, Rate], Args],
) -> tuple[Y, Rate]:
    field, t, state, args = operands
    return field(t, state, args)


@eqx.filter_custom_vjp
def _move_plain(operands):
    field, t, (y, penalty), args = operands
    zero = nothing_of((field, y, args))
    still = jtu.tree_map(lambda p: jnp.zeros_like(p) + zero.astype(p.dtype), penalty)
    return AugmentedState(field.term.vf(t, y, args), still)


@_move_plain.def_fwd
def _forward(perturbed, operands):
    del perturbed
    return _move_plain(operands), None


@_move_plain.def_bwd
def _backward(residuals, cotangent, perturbed, operands):
    del residuals, perturbed
    out, transpose = eqx.filter_vjp(_evaluate, operands)
    zeros = lambda x, ct: jnp.zeros_like(x) if ct is None else ct
    cotangent = jtu.tree_map(zeros, out, cotangent, is_leaf=lambda x: x is None)
    return transpose(cotangent)[0]
