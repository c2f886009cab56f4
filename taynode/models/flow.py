"""Continuous normalizing flows: densities and samples from a vector field."""

import math
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import PRNGKeyArray

from .._types import RealScalarLike, VectorField
from ..quadrature import PerRow
from ..regularizers.jacobian import SharedProduct
from .divergence import AbstractDivergence, ExactDivergence, HutchinsonDivergence
from .solve import Solve


class FlowField(eqx.Module):
    """The vector field of samples and their log-densities: minus the divergence moves the latter.

    `args` is `tn.PerRow(noise)`, where `noise` are the random numbers of the divergence, which
    differ from sample to sample; `None` for a deterministic divergence.
    """

    vector_field: VectorField
    divergence: AbstractDivergence
    num_axes: int = eqx.field(static=True)

    def __call__(self, t: RealScalarLike, y: tuple[Any, Any], args: PerRow) -> tuple[Any, Any]:
        """The slope of the pair."""
        z, _ = y
        slope, divergence = self.divergence(self._at(t), z, args.value, self.num_axes)
        return slope, -divergence

    def jacobian_product(
        self, t: RealScalarLike, y: tuple[Any, Any], args: PerRow
    ) -> SharedProduct | None:
        """The product of the divergence's direction with the Jacobian of the samples.

        `tn.JacobianFrobenius` then needs no product of its own.
        """
        if not isinstance(self.divergence, HutchinsonDivergence):
            return None
        z, _ = y
        slope, product = self.divergence.product(self._at(t), z, args.value)
        change = -self.divergence.trace(product, args.value, self.num_axes)
        return SharedProduct((slope, change), z, product, self.divergence.noise)

    def _at(self, t: RealScalarLike) -> Any:
        return lambda z: self.vector_field(t, z, None)


def sample_part(y: tuple[Any, Any]) -> Any:
    """The samples in the state of a flow, without their log-densities: a `where=` for flows."""
    return y[0]


class ContinuousFlow(eqx.Module):
    """A density on samples of any shape: a standard normal, carried along by a vector field.

    Data is at time 0, the normal distribution at time 1. The penalty of a regularizer should be on
    samples and not on log-densities: `tn.TotalDerivative(2, where=tn.models.sample_part)`.

    **Arguments:**

    - `vector_field`: a function `f(t, z, args)` of batches along a first axis, sample by sample.
    - `event_shape`: of a sample, such as `(2,)` or `(28, 28, 1)`.
    - `divergence`: `ExactDivergence()` or `HutchinsonDivergence()`; the first for up to 8
        dimensions, by default.
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
        self, x: Any, solve: Solve | None = None, *, key: PRNGKeyArray | None = None
    ) -> tuple[Any, dfx.Solution]:
        """The log-densities of a batch of samples, solved jointly, and the solution.

        **Arguments:**

        - `x`: samples, along a first axis.
        - `solve`: how to solve; with Dopri5 at a tolerance of 1e-5 by default.
        - `key`: for the divergence, and for regularizers that draw something.
        """
        self._check(x)
        noise_key, key = (None, None) if key is None else jr.split(key)
        noise = self.divergence.draw(x, noise_key)
        y0 = x, jnp.zeros(len(x), x.dtype)
        solution = (solve or Solve())(self.field, y0, PerRow(noise), key=key)
        z, change = (y[-1] for y in solution.ys)
        return self.base_log_prob(z) - change, solution

    def sample(
        self, key: PRNGKeyArray, num: int, solve: Solve | None = None
    ) -> tuple[Any, dfx.Solution]:
        """New samples, solved jointly, and the solution."""
        return self.from_base(jr.normal(key, (num, *self.event_shape), self.dtype), solve)

    def from_base(self, z: Any, solve: Solve | None = None) -> tuple[Any, dfx.Solution]:
        """Where points of the base distribution come from: time runs from 1 to 0."""
        self._check(z)
        solution = (solve or Solve())(self.vector_field, z, t0=1.0, t1=0.0)
        return solution.ys[-1], solution

    def transport(self, x: Any, times: Any, solve: Solve | None = None) -> tuple[Any, dfx.Solution]:
        """Where samples are at increasing times between 0 and 1, and the solution."""
        self._check(x)
        times = jnp.asarray(times, x.dtype)
        solution = (solve or Solve())(self.vector_field, x, saveat=dfx.SaveAt(ts=times))
        return solution.ys, solution

    @property
    def dtype(self) -> Any:
        """Of the parameters of the vector field."""
        leaves = jtu.tree_leaves(eqx.filter(self.vector_field, eqx.is_inexact_array))
        return jnp.result_type(*leaves) if leaves else jnp.result_type(float)

    @property
    def field(self) -> FlowField:
        """The vector field of the pair of samples and log-densities."""
        return FlowField(self.vector_field, self.divergence, len(self.event_shape))

    def base_log_prob(self, z: Any) -> Any:
        """The log-density of the standard normal distribution."""
        axes = tuple(range(-len(self.event_shape), 0))
        constant = math.prod(self.event_shape) * math.log(2 * math.pi)
        return -0.5 * (jnp.sum(z**2, axis=axes) + constant)

    def _check(self, x: Any) -> None:
        if x.ndim != 1 + len(self.event_shape) or x.shape[1:] != self.event_shape:
            raise ValueError(
                f"A batch of samples has shape (num, {', '.join(map(str, self.event_shape))}), "
                f"got {x.shape}."
            )
