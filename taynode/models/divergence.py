"""The divergence of a vector field, by which a flow changes densities."""

import abc
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._types import Arrays
from ..noise import check_noise, draw_direction


# The axes of a batch, and then those of a sample. Samples do not influence each other.
Samples = Float[Array, "*batch_and_sample"]
PerSample = Float[Array, "*batch"]
Field = Callable[[Array], Array]


class AbstractDivergence(eqx.Module):
    """A way to compute the trace of the Jacobian."""

    @abc.abstractmethod
    def draw(self, z: Samples, key: PRNGKeyArray | None) -> Arrays:
        """Draw the noise of a solve, with an entry for each sample; `None` if there is no noise."""

    @abc.abstractmethod
    def __call__(
        self, field: Field, z: Samples, noise: Arrays, num_axes: int
    ) -> tuple[Samples, PerSample]:
        """Compute dz/dt and its divergence for each sample.

        **Arguments:**

        - `field`: the vector field, a function of `z` alone.
        - `z`: the samples.
        - `noise`: the result of `draw`.
        - `num_axes`: how many axes a sample has. They are the last ones of `z`.
        """


class ExactDivergence(AbstractDivergence):
    """The trace itself: one product with the Jacobian per dimension, all in one batch."""

    def draw(self, z: Samples, key: PRNGKeyArray | None) -> None:
        """`None`: the trace is deterministic."""
        del z, key

    def __call__(
        self, field: Field, z: Samples, noise: Arrays, num_axes: int
    ) -> tuple[Samples, PerSample]:
        """Compute dz/dt and its divergence for each sample."""
        del noise
        batch, event = z.shape[: z.ndim - num_axes], z.shape[z.ndim - num_axes :]
        size = math.prod(event)
        basis = jnp.eye(size, dtype=z.dtype).reshape(size, *event)

        # The slope of a sample depends on that sample alone, so all can have the same direction.
        def column(direction: Array) -> tuple[Array, Array]:
            return jax.jvp(field, (z,), (jnp.broadcast_to(direction, z.shape),))

        slope, columns = jax.vmap(column, out_axes=(None, 0))(basis)
        return slope, jnp.einsum("i...i->...", columns.reshape(size, *batch, size))


class HutchinsonDivergence(AbstractDivergence):
    r"""Hutchinson's unbiased estimate $\varepsilon^\top J \varepsilon$ of the trace.

    Each sample has a random direction, drawn once per solve and held fixed during it.

    **Arguments:**

    - `noise`: the distribution of the direction, `"rademacher"` or `"gaussian"`.
    """

    noise: str = eqx.field(static=True, default="rademacher")

    def __check_init__(self):
        check_noise(self.noise)

    def draw(self, z: Samples, key: PRNGKeyArray | None) -> Samples:
        """Draw a direction for each sample."""
        if key is None:
            raise ValueError(
                "`HutchinsonDivergence` draws a random direction, so the flow needs `key=`; pass "
                "for example `key=jax.random.key(0)`, or use `ExactDivergence()`."
            )
        return draw_direction(self.noise, z, key)

    def __call__(
        self, field: Field, z: Samples, noise: Samples, num_axes: int
    ) -> tuple[Samples, PerSample]:
        """Compute dz/dt and its divergence for each sample."""
        slope, product = self.product(field, z, noise)
        return slope, self.trace(product, noise, num_axes)

    def product(self, field: Field, z: Samples, noise: Samples) -> tuple[Samples, Samples]:
        """Compute dz/dt, and the product of the direction with the Jacobian."""
        slope, transpose = jax.vjp(field, z)
        return slope, transpose(noise)[0]

    def trace(self, product: Samples, noise: Samples, num_axes: int) -> PerSample:
        """Compute the divergence for each sample from the result of `product`."""
        return jnp.sum(product * noise, axis=tuple(range(-num_axes, 0)))
