"""RNODE: kinetic energy and Jacobian, weighted."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
from jaxtyping import PRNGKeyArray

from .._types import Args, RealScalarLike, VectorField, Y
from .base import AbstractRegularizer, as_selection, everything, mean_square, select
from .jacobian import JacobianFrobenius


class RNODE(AbstractRegularizer):
    """The weighted sum of `KineticEnergy` and `JacobianFrobenius`, at the cost of the latter.

    The weight of the whole is the caller's, who adds the penalty to a loss. Finlay et al. use 0.01
    for each of the two terms, which is this regularizer with a weight of 0.01. Needs `key=`.

    Reference: Finlay, Jacobsen, Nurbekyan and Oberman, How to Train Your Neural ODE: the World of
    Jacobian and Kinetic Regularization, ICML 2020.

    **Arguments:**

    - `kinetic`: the weight of the kinetic energy.
    - `jacobian`: the weight of the Jacobian's norm.
    - `noise`, `form`, `where`: as for `JacobianFrobenius`.
    """

    kinetic: Any = 1.0
    jacobian: Any = 1.0
    noise: str | None = eqx.field(static=True, default=None, kw_only=True)
    form: str = eqx.field(static=True, default="vjp", kw_only=True)
    where: Callable[[Y], Any] = eqx.field(
        static=True, default=everything, kw_only=True, converter=as_selection
    )

    def __check_init__(self):
        self._frobenius()  # refuses what it cannot use

    def _frobenius(self) -> JacobianFrobenius:
        return JacobianFrobenius(noise=self.noise, form=self.form, where=self.where)

    def init(self, y0: Y, args: Args, *, key: PRNGKeyArray | None = None) -> Any:
        """The random direction of the Jacobian's estimate."""
        return self._frobenius().init(y0, args, key=key)

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: Any
    ) -> tuple[Y, Any]:
        """The slope, and the weighted sum of both charges."""
        slope, jacobian = self._frobenius().rate(vector_field, t, y, args, state)
        kinetic = mean_square(select(self.where, slope))
        return slope, self.kinetic * kinetic + self.jacobian * jacobian
