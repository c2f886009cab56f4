"""Penalties on several points of a path at once."""

import abc

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree, Real

from .._types import Args, Arrays, Rate, RealScalar, RealScalarLike, VectorField, Y
from .base import AbstractPartRegularizer, mean_square


class AbstractPathRegularizer(AbstractPartRegularizer):
    """A penalty on several points of a path at once, for `quadrature=tn.PathPoints()`.

    **Arguments:**

    - `where`: a function that selects the part of the state to penalize; by default all of it.
    """

    @abc.abstractmethod
    def of_path(self, times: Real[Array, " points"], states: Arrays) -> Rate:
        """The penalty of a path, from its points.

        **Arguments:**

        - `times`: the times, in the order of the solve, with the first and the last one.
        - `states`: the selected parts of the states, with points along the first axis.
        """

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: PyTree
    ) -> tuple[Y, Rate]:
        """There is none at a single point."""
        del vector_field, t, y, args, state
        raise TypeError(
            f"`{type(self).__name__}` compares several points of a path, so it needs "
            "`quadrature=tn.PathPoints()`."
        )


class PolynomialDistance(AbstractPathRegularizer):
    """The mean square distance of a path from a polynomial, which is fitted to the same points.

    With `degree=1` it penalizes paths that are not straight, or not of constant speed. It needs no
    derivatives of the vector field. It is no estimate of an integral: its mean over random points
    depends on their number.

    Reference: Huang and Yeh, Accelerating Continuous Normalizing Flow with Trajectory Polynomial
    Regularization, AAAI 2021.

    **Arguments:**

    - `degree`: the degree of the polynomial. `tn.PathPoints` must have at least as many points.
    - `where`: a function that selects the part of the state to penalize; by default all of it.
    """

    degree: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if not isinstance(self.degree, int) or isinstance(self.degree, bool) or self.degree < 0:
            raise ValueError(
                f"`degree` must be a Python integer of at least 0, got {self.degree!r}."
            )

    def of_path(self, times: Real[Array, " points"], states: Arrays) -> RealScalar:
        """The mean square of what the polynomial does not explain."""
        if len(times) < self.degree + 2:
            raise ValueError(
                f"`degree` {self.degree} needs `tn.PathPoints(points={self.degree})` or more: "
                f"a polynomial of this degree interpolates {len(times)} points exactly."
            )
        # Powers of numbers between -1 and 1 are well conditioned for small degrees.
        length = times[-1] - times[0]
        # All points of a path of length zero are equal, so any polynomial explains them.
        even = jnp.linspace(0.0, 1.0, len(times), dtype=times.dtype)
        is_point = length == 0
        fraction = (times - times[0]) / jnp.where(is_point, jnp.ones_like(length), length)
        unit = 2 * jnp.where(is_point, even, fraction) - 1
        basis, _ = jnp.linalg.qr(jnp.stack([unit**k for k in range(self.degree + 1)], axis=1))

        def residual(x: Array) -> Array:
            flat = x.reshape(len(times), -1)
            q = basis.astype(flat.dtype)
            return flat - q @ (q.T @ flat)

        return mean_square(jtu.tree_map(residual, states))
