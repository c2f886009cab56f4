"""The derivative of the vector field along itself."""

from collections.abc import Callable
from typing import Any

import equinox as eqx

from .._types import Args, RealScalarLike, VectorField, Y
from ..taylor import derivative_of_part
from .base import AbstractRegularizer, as_selection, everything, mean_square, select


class DirectionalDerivative(AbstractRegularizer):
    """The mean square of J f, the acceleration that is due to the state alone.

    It is `TotalDerivative(order=2)` without df/dt, and equal to it for autonomous vector fields.

    **Arguments:**

    - `where`: which part of the state is charged; all of it by default.
    """

    where: Callable[[Y], Any] = eqx.field(
        static=True, default=everything, kw_only=True, converter=as_selection
    )

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: Any
    ) -> tuple[Y, Any]:
        """The slope, and the mean square of its derivative at this instant."""
        del state
        frozen = lambda _, y, args: vector_field(t, y, args)
        slope, derivative = derivative_of_part(frozen, t, y, args, order=2, where=self.where)
        return slope, mean_square(select(lambda x: x, derivative))
