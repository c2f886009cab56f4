"""How fast the path turns."""

import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import PyTree

from .._types import Args, Rate, RealScalarLike, VectorField, Y
from ..taylor import solution_derivatives
from .base import AbstractPartRegularizer, mean_square


class Curvature(AbstractPartRegularizer):
    r"""The squared angle by which the path turns per unit of time.

    It is the part of $d^2y/dt^2$ that is orthogonal to the slope, divided by the speed. So it
    penalizes bending and not speeding up, and does not depend on the unit of the state. A straight
    path is free at any speed. If the state is a batch that is solved jointly, use
    `tn.Sampled(batch_axis=0)`: otherwise the batch is one path in a large space.

    **Arguments:**

    - `where`: a function that selects the part of the state to penalize; by default all of it.
    """

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: PyTree
    ) -> tuple[Y, Rate]:
        """Compute the slope, and the squared rate of turning."""
        del state
        slope, bend = solution_derivatives(vector_field, t, y, args, order=2)
        velocity, acceleration = self.where(slope), self.where(bend)
        square = mean_square(velocity)
        # A path that rests does not turn, also if it is about to start.
        moves = square > 0
        square = jnp.where(moves, square, jnp.ones_like(square))
        products = [
            jnp.sum((jnp.conj(v) * a).real).astype(square.dtype)
            for v, a in zip(jtu.tree_leaves(velocity), jtu.tree_leaves(acceleration), strict=True)
        ]
        size = sum(jnp.size(v) for v in jtu.tree_leaves(velocity))
        along = sum(products[1:], products[0]) / size / square
        across = jtu.tree_map(lambda v, a: a - along.astype(v.dtype) * v, velocity, acceleration)
        turning = mean_square(across) / square
        return slope, jnp.where(moves, turning, jnp.zeros_like(turning))
