"""The divergence of a vector field, which tells how a flow changes densities."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Key
from ..regularizers.jacobian import DISTRIBUTIONS


class AbstractDivergence(eqx.Module):
    """How the trace of the Jacobian is computed.

    States are batches of samples: the last `num_axes` axes are those of a sample, and the samples
    do not influence each other.
    """

    @abc.abstractmethod
    def draw(self, z: Any, key: Key | None) -> Any:
        """What is drawn once per solve, for a state like `z`; nothing if there is no chance."""

    @abc.abstractmethod
    def __call__(
        self, field: Callable[[Any], Any], z: Any, noise: Any, num_axes: int
    ) -> tuple[Any, Any]:
        """The slope at `z`, and its divergence for each sample."""


class ExactDivergence(AbstractDivergence):
    """The trace itself: one product with the Jacobian per dimension, all in one batch."""

    def draw(self, z: Any, key: Key | None) -> None:
        """Nothing."""
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
    r"""An unbiased estimate, $\varepsilon^\top J \varepsilon$, from one random direction per solve.

    **Arguments:**

    - `noise`: the distribution of the direction, `"rademacher"` or `"gaussian"`.
    """

    noise: str = eqx.field(static=True, default="rademacher")

    def __check_init__(self):
        if self.noise not in DISTRIBUTIONS:
            raise ValueError(f"`noise` must be one of {list(DISTRIBUTIONS)}, got {self.noise!r}.")

    def draw(self, z: Any, key: Key | None) -> Any:
        """The direction."""
        if key is None:
            raise ValueError(
                "`HutchinsonDivergence` draws a random direction, so the flow needs `key=`; pass "
                "for example `key=jax.random.key(0)`, or use `ExactDivergence()`."
            )
        return DISTRIBUTIONS[self.noise](key, z.shape, z.dtype)

    def __call__(
        self, field: Callable[[Any], Any], z: Any, noise: Any, num_axes: int
    ) -> tuple[Any, Any]:
        """The slope at `z`, and its divergence for each sample."""
        slope, product = self.product(field, z, noise)
        return slope, self.trace(product, z, noise, num_axes)

    def product(self, field: Callable[[Any], Any], z: Any, noise: Any) -> tuple[Any, Any]:
        """The slope at `z`, and the product of the direction with the Jacobian."""
        slope, transpose = jax.vjp(field, z)
        return slope, transpose(_like(noise, z))[0]

    def trace(self, product: Any, z: Any, noise: Any, num_axes: int) -> Any:
        """The divergence, from such a product."""
        return jnp.sum(product * _like(noise, z), axis=tuple(range(-num_axes, 0)))


def _like(noise: Any, z: Any) -> Any:
    """The directions of a state, which may be some rows of that for which they were drawn."""
    # Directions do not depend on samples, so those of the first ones serve for any of them.
    return noise if noise.shape == z.shape else noise[: len(z)]


def _split(z: Any, num_axes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    cut = z.ndim - num_axes
    return z.shape[:cut], z.shape[cut:]


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size
