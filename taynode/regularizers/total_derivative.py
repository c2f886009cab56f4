"""R_K: the K-th total derivative of the path."""

import equinox as eqx
from jaxtyping import PyTree

from .._types import Args, Rate, RealScalarLike, VectorField, Y
from ..taylor import derivative_of_part
from .base import AbstractPartRegularizer, mean_square


class TotalDerivative(AbstractPartRegularizer):
    r"""The regularizer $R_K$: the squared K-th total time derivative of the solution.

    A solver of order m makes errors in proportion to derivatives of order m + 1, so paths whose
    high derivatives are small are cheap to solve. The derivative includes df/dt and has no
    factorial. It costs one expansion of the vector field per order.

    Reference: Kelly, Bettencourt, Johnson and Duvenaud, Learning Differential Equations that are
    Easy to Solve, NeurIPS 2020.

    **Arguments:**

    - `order`: the order K of the derivative, at least 1. Order 1 is the kinetic energy.
    - `where`: a function that selects the part of the state to penalize, such as `lambda y: y[0]`;
        by default all of it. Higher orders are computed for this part and its dependencies alone.
    """

    order: int = eqx.field(static=True)

    def __check_init__(self):
        if not isinstance(self.order, int) or isinstance(self.order, bool) or self.order < 1:
            raise ValueError(
                f"`order` must be a Python integer of at least 1, got {self.order!r}. "
                "`TotalDerivative(order=2)` or 3 is a good choice for solvers of order 4 and 5."
            )

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: PyTree
    ) -> tuple[Y, Rate]:
        """Compute the slope, and the mean square of the derivative."""
        del state
        slope, derivative = derivative_of_part(
            vector_field, t, y, args, order=self.order, where=self.where
        )
        return slope, mean_square(derivative)
