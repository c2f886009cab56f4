"""The derivative of the vector field along itself."""

from jaxtyping import PyTree

from .._types import Args, Rate, RealScalarLike, VectorField, Y
from ..taylor import derivative_of_part
from .base import AbstractPartRegularizer, mean_square


class DirectionalDerivative(AbstractPartRegularizer):
    """The mean square of J f, the acceleration that is due to the state alone.

    It is `TotalDerivative(order=2)` without df/dt, and equal to it for autonomous vector fields.

    **Arguments:**

    - `where`: a function that selects the part of the state to penalize; by default all of it.
    """

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: PyTree
    ) -> tuple[Y, Rate]:
        """Compute the slope, and the mean square of its derivative at a fixed time."""
        del state
        frozen = lambda _, y, args: vector_field(t, y, args)
        slope, derivative = derivative_of_part(frozen, t, y, args, order=2, where=self.where)
        return slope, mean_square(derivative)
