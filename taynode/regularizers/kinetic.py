"""K: the kinetic energy of the path."""

from jaxtyping import PyTree

from .._types import Args, Rate, RealScalarLike, VectorField, Y
from .base import AbstractPartRegularizer, mean_square


class KineticEnergy(AbstractPartRegularizer):
    """The mean square of the slope, which is small for short and straight paths.

    It is RNODE's first term, without the factor of one half in RNODE's code.

    **Arguments:**

    - `where`: a function that selects the part of the state to penalize; by default all of it.
    """

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: PyTree
    ) -> tuple[Y, Rate]:
        """Compute the slope, and its mean square."""
        del state
        slope = vector_field(t, y, args)
        return slope, mean_square(self.where(slope))
