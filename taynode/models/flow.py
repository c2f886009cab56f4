"""Continuous normalizing flows: densities and samples from a vector field."""

import math
from collections.abc import Callable
from typing import TypeVar

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, Real

from .._types import RealScalarLike, VectorField
from ..quadrature import PerRow
from ..regularizers.jacobian import SharedProduct
from .divergence import AbstractDivergence, ExactDivergence, HutchinsonDivergence
from .solve import Solve


Samples = Float[Array, "num *event"]
PerSample = Float[Array, " num"]
T = TypeVar("T")


class FlowField(eqx.Module):
    """The vector field of samples and their log-densities, whose slope is minus the divergence.

    `args` is `tn.PerRow(noise)`, where `noise` is that of the divergence.
    """

    vector_field: VectorField
    divergence: AbstractDivergence
    num_axes: int = eqx.field(static=True)

    def __call__(
        self, t: RealScalarLike, y: tuple[Samples, PerSample], args: PerRow
    ) -> tuple[Samples, PerSample]:
        """Compute dy/dt."""
        z, _ = y
        slope, divergence = self.divergence(self._at(t), z, args.value, self.num_axes)
        return slope, -divergence

    def jacobian_product(
        self, t: RealScalarLike, y: tuple[Samples, PerSample], args: PerRow
    ) -> SharedProduct | None:
        """Share the product of Hutchinson's estimator with `tn.JacobianFrobenius`."""
        if not isinstance(self.divergence, HutchinsonDivergence):
            return None
        z, _ = y
        slope, product = self.divergence.product(self._at(t), z, args.value)
        change = -self.divergence.trace(product, args.value, self.num_axes)
        return SharedProduct((slope, change), z, product, self.divergence.noise)

    def _at(self, t: RealScalarLike) -> Callable[[Array], Array]:
        return lambda z: self.vector_field(t, z, None)


def sample_part(y: tuple[T, object]) -> T:
    """Select the samples in the state of a flow, for use as `where=` of a regularizer."""
    return y[0]


class ContinuousFlow(eqx.Module):
    """A density on samples of any shape: a standard normal, carried along by a vector field.

    Data is at time 0, the normal distribution at time 1. Penalize the samples and not their
    log-densities: `tn.TotalDerivative(2, where=tn.models.sample_part)`.

    **Arguments:**

    - `vector_field`: a function `f(t, z, args)` of a batch of samples along the first axis.
    - `event_shape`: the shape of a sample, such as `(2,)` or `(28, 28, 1)`.
    - `divergence`: `ExactDivergence()` or `HutchinsonDivergence()`. By default, the first for up to
        8 dimensions, and the second above.
    """

    vector_field: VectorField
    event_shape: tuple[int, ...] = eqx.field(static=True)
    divergence: AbstractDivergence

    def __init__(
        self,
        vector_field: VectorField,
        event_shape: tuple[int, ...],
        divergence: AbstractDivergence | None = None,
    ):
        self.vector_field, self.event_shape = vector_field, tuple(event_shape)
        if divergence is None:
            is_small = math.prod(self.event_shape) <= 8
            divergence = ExactDivergence() if is_small else HutchinsonDivergence()
        self.divergence = divergence

    def log_prob(
        self, x: Samples, solve: Solve | None = None, *, key: PRNGKeyArray | None = None
    ) -> tuple[PerSample, dfx.Solution]:
        """Compute the log-densities of a batch of samples, solved jointly, and the solution.

        **Arguments:**

        - `x`: the samples.
        - `solve`: the solver and its settings; by default Dopri5 with tolerances of 1e-5.
        - `key`: a random key for the divergence and the penalty.
        """
        self._check(x)
        noise_key, key = (None, None) if key is None else jr.split(key)
        noise = self.divergence.draw(x, noise_key)
        y0 = x, jnp.zeros(len(x), x.dtype)
        solution = (solve or Solve())(self.field, y0, PerRow(noise), key=key)
        z, change = (y[-1] for y in solution.ys)
        return self.base_log_prob(z) - change, solution

    def sample(
        self,
        key: PRNGKeyArray,
        num: int,
        solve: Solve | None = None,
        *,
        penalty_key: PRNGKeyArray | None = None,
    ) -> tuple[Samples, dfx.Solution]:
        """Draw new samples, solved jointly, and return them and the solution."""
        noise = jr.normal(key, (num, *self.event_shape), self.dtype)
        return self.from_base(noise, solve, key=penalty_key)

    def from_base(
        self, z: Samples, solve: Solve | None = None, *, key: PRNGKeyArray | None = None
    ) -> tuple[Samples, dfx.Solution]:
        """Solve from points of the base distribution, at time 1, back to samples at time 0.

        `key` is a random key for the penalty.
        """
        self._check(z)
        solution = (solve or Solve())(self.vector_field, z, t0=1.0, t1=0.0, key=key)
        return solution.ys[-1], solution

    def transport(
        self, x: Samples, times: Real[Array, " times"], solve: Solve | None = None
    ) -> tuple[Float[Array, "times num *event"], dfx.Solution]:
        """Compute the states of samples at increasing times between 0 and 1, and the solution."""
        self._check(x)
        times = jnp.asarray(times, x.dtype)
        solution = (solve or Solve())(self.vector_field, x, saveat=dfx.SaveAt(ts=times))
        return jnp.asarray(solution.ys), solution

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the parameters of the vector field."""
        leaves = jtu.tree_leaves(eqx.filter(self.vector_field, eqx.is_inexact_array))
        return jnp.result_type(*leaves) if leaves else jnp.result_type(float)

    @property
    def field(self) -> FlowField:
        """The vector field of the pair of samples and log-densities."""
        return FlowField(self.vector_field, self.divergence, len(self.event_shape))

    def base_log_prob(self, z: Samples) -> PerSample:
        """Compute the log-density of the standard normal distribution."""
        axes = tuple(range(-len(self.event_shape), 0))
        constant = math.prod(self.event_shape) * math.log(2 * math.pi)
        return -0.5 * (jnp.sum(z**2, axis=axes) + constant)

    def _check(self, x: Array) -> None:
        if x.ndim != 1 + len(self.event_shape) or x.shape[1:] != self.event_shape:
            raise ValueError(
                f"A batch of samples has shape (num, {', '.join(map(str, self.event_shape))}), "
                f"got {x.shape}."
            )
