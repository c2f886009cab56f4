"""RNODE: kinetic energy and Jacobian, weighted."""

import equinox as eqx
from jaxtyping import PRNGKeyArray

from .._types import Args, Rate, RealScalarLike, VectorField, Y
from .base import AbstractPartRegularizer, mean_square
from .jacobian import JacobianFrobenius


class RNODE(AbstractPartRegularizer):
    """The weighted sum of `KineticEnergy` and `JacobianFrobenius`, at the cost of the latter.

    Finlay et al. weight each of the two terms by 0.01. This corresponds to this regularizer, with
    its penalty weighted by 0.01 in the loss. Needs `key=`.

    Reference: Finlay, Jacobsen, Nurbekyan and Oberman, How to Train Your Neural ODE: the World of
    Jacobian and Kinetic Regularization, ICML 2020.

    **Arguments:**

    - `kinetic`: the weight of the kinetic energy.
    - `jacobian`: the weight of the Jacobian's norm.
    - `noise`, `form`, `where`: as for `JacobianFrobenius`.
    """

    kinetic: RealScalarLike = 1.0
    jacobian: RealScalarLike = 1.0
    noise: str | None = eqx.field(static=True, default=None, kw_only=True)
    form: str = eqx.field(static=True, default="vjp", kw_only=True)

    def __check_init__(self):
        self._frobenius()  # checks its arguments

    def _frobenius(self) -> JacobianFrobenius:
        return JacobianFrobenius(noise=self.noise, form=self.form, where=self.where)

    def init(self, y0: Y, args: Args, *, key: PRNGKeyArray | None = None) -> Y:
        """Draw the random direction for the estimate of the Jacobian's norm."""
        return self._frobenius().init(y0, args, key=key)

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: Y
    ) -> tuple[Y, Rate]:
        """Compute the slope, and the weighted sum of both rates."""
        slope, jacobian = self._frobenius().rate(vector_field, t, y, args, state)
        kinetic = mean_square(self.where(slope))
        return slope, self.kinetic * kinetic + self.jacobian * jacobian
