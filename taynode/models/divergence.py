"""The divergence of a vector field, by which a flow changes densities."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from ..noise import check_noise, draw_direction


class AbstractDivergence(eqx.Module):
    """How the trace of the Jacobian is computed.

    States are batches of samples: the last `num_axes` axes are those of a sample, and the samples
    do not influence each other.
    """

    @abc.abstractmethod
    def draw(self, z: Any, key: PRNGKeyArray | None) -> Any:
        """The random numbers of a solve, one row for each row of `z`; `None` if deterministic."""

    @abc.abstractmethod
    def __call__(
        self, field: Callable[[Any], Any], z: Any, noise: Any, num_axes: int
    ) -> tuple[Any, Any]:
        """The slope at `z`, and its divergence for each sample."""


class ExactDivergence(AbstractDivergence):
    """The trace itself: one product with the Jacobian per dimension, all in one batch."""

    def draw(self, z: Any, key: PRNGKeyArray | None) -> None:
        """`None`: the trace is deterministic."""
        del z, key

    def __call__(
        self, field: Callable[[Any], Any], z: Any, noise: Any, num_axes: int
    ) -> tuple[Any, Any]:
        """The slope at `z`, and its divergence for each sample."""
        del noise
        batch, event = _split(z, num_axes)
        size = _size(event)
        basis = jnp.eye(size, dtype=z.dtype).reshape(size, *event)

        # A sample's slope depends on that sample alone, so one direction serves for all of them.
        def column(direction: Any) -> tuple[Any, Any]:
            return jax.jvp(field, (z,), (jnp.broadcast_to(direction, z.shape),))

        slope, columns = jax.vmap(column, out_axes=(None, 0))(basis)
        return slope, jnp.einsum("i...i->...", columns.reshape(size, *batch, size))


class HutchinsonDivergence(AbstractDivergence):
    r"""An unbiased estimate, $\varepsilon^\top J \varepsilon$, one random direction a sample.

    The directions are drawn once per solve and held fixed during it.

    **Arguments:**

    - `noise`: the distribution of the direction, `"rademacher"` or `"gaussian"`.
    """

    noise: str = eqx.field(static=True, default="rademacher")

    def __check_init__(self):
        check_noise(self.noise)

    def draw(self, z: Any, key: PRNGKeyArray | None) -> Any:
        """A random direction for each sample."""
        if key is None:
            raise ValueError(
                "`HutchinsonDivergence` draws a random direction, so the flow needs `key=`; pass "
                "for example `key=jax.random.key(0)`, or use `ExactDivergence()`."
            )
        return draw_direction(self.noise, z, key)

    def __call__(
        self, field: Callable[[Any], Any], z: Any, noise: Any, num_axes: int
    ) -> tuple[Any, Any]:
        """The slope at `z`, and its divergence for each sample."""
        slope, product = self.product(field, z, noise)
        return slope, self.trace(product, noise, num_axes)

    def product(self, field: Callable[[Any], Any], z: Any, noise: Any) -> tuple[Any, Any]:
        """The slope at `z`, and the product of the direction with the Jacobian."""
        slope, transpose = jax.vjp(field, z)
        return slope, transpose(noise)[0]

    def trace(self, product: Any, noise: Any, num_axes: int) -> Any:
        """The divergence for each sample, from the result of `product`."""
        return jnp.sum(product * noise, axis=tuple(range(-num_axes, 0)))


def _split(z: Any, num_axes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    cut = z.ndim - num_axes
    return z.shape[:cut], z.shape[cut:]


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size
