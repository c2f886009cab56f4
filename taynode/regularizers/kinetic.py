"""K: the kinetic energy of the path."""

from collections.abc import Callable
from typing import Any

import equinox as eqx

from .._types import Args, RealScalarLike, VectorField, Y
from .base import AbstractRegularizer, as_selection, everything, mean_square, select


class KineticEnergy(AbstractRegularizer):
    """The mean square of the slope: straight, short paths are cheap.

    It is RNODE's first term, without the factor of one half that RNODE's code has.

    **Arguments:**

    - `where`: which part of the state is charged; all of it by default.
    """

    where: Callable[[Y], Any] = eqx.field(
        static=True, default=everything, kw_only=True, converter=as_selection
    )

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: Any
    ) -> tuple[Y, Any]:
        """The slope, and its mean square."""
        del state
        slope = vector_field(t, y, args)
        return slope, mean_square(select(self.where, slope))
