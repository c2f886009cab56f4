"""Means of measurements between two adjustments of a weight."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .base import Measurement


# Steps between two adjustments: the training must be able to respond to the last one. The interval
# grows with the number of steps, because the length of a run is not known: a run of ten times as
# many steps also responds more slowly, and what matters late in it lasts longer.
FEWEST_STEPS, STEPS_PER_INTERVAL = 10, 32


class Mean(NamedTuple):
    """A mean of the measurements so far."""

    total: Float[Array, ""]
    count: Int[Array, ""]

    @classmethod
    def empty(cls) -> "Mean":
        """No measurement."""
        return cls(jnp.array(0.0, float), jnp.array(0, int))

    def add(self, values: Measurement | None) -> "Mean":
        """Add the mean of some values, unless they are absent or not finite. NaNs are left out."""
        if values is None:
            return self
        value = jnp.nanmean(jnp.asarray(values, self.total.dtype))
        known = jnp.isfinite(value)
        total = self.total + jnp.where(known, value, jnp.zeros_like(value))
        return Mean(total, self.count + known.astype(self.count.dtype))

    @property
    def value(self) -> Float[Array, ""]:
        """The mean; zero if there was no measurement."""
        return self.total / _as_divisor(self.count, self.total)


class Spread(NamedTuple):
    """The standard deviation of a number over all steps so far, whatever its offset."""

    mean: Float[Array, ""]
    squares: Float[Array, ""]
    count: Int[Array, ""]

    @classmethod
    def empty(cls) -> "Spread":
        """No measurement."""
        return cls(jnp.array(0.0, float), jnp.array(0.0, float), jnp.array(0, int))

    def add(self, value: Measurement | None) -> "Spread":
        """Add a number, unless it is absent or not finite, or its square overflows."""
        if value is None:
            return self
        value = jnp.mean(jnp.asarray(value, self.mean.dtype))
        change = value - self.mean
        mean = self.mean + change / _as_divisor(self.count + 1, change)
        squares = self.squares + change * (value - mean)
        new = Spread(mean, squares, self.count + 1)
        is_known = jnp.isfinite(squares)
        return Spread(*(jnp.where(is_known, x, y) for x, y in zip(new, self, strict=True)))

    @property
    def value(self) -> Float[Array, ""]:
        """The standard deviation; 1 if fewer than two different numbers are known."""
        deviation = jnp.sqrt(self.squares / _as_divisor(self.count, self.squares))
        return jnp.where(deviation > 0, deviation, jnp.ones_like(deviation))


class Window(NamedTuple):
    """Measurements since the last adjustment of a weight."""

    step: Int[Array, ""]
    due: Int[Array, ""]
    nfe: Mean
    loss: Mean
    penalty: Mean

    @classmethod
    def first(cls) -> "Window":
        """The window of a run that begins."""
        return cls(jnp.array(0, int), jnp.array(FEWEST_STEPS, int), *_no_means())

    def add(
        self, nfe: Measurement | None, loss: Measurement | None, penalty: Measurement | None
    ) -> "Window":
        """Add the measurements of one step."""
        return Window(
            self.step + 1,
            self.due,
            self.nfe.add(nfe),
            self.loss.add(loss),
            self.penalty.add(penalty),
        )

    @property
    def is_due(self) -> Bool[Array, ""]:
        """Whether enough steps were made since the last adjustment."""
        return self.step >= self.due

    def next(self) -> "Window":
        """The empty window that follows."""
        interval = jnp.maximum(FEWEST_STEPS, self.step // STEPS_PER_INTERVAL)
        return Window(self.step, self.step + interval, *_no_means())


def _no_means() -> tuple[Mean, Mean, Mean]:
    # Each has arrays of its own: a buffer cannot be donated twice.
    return Mean.empty(), Mean.empty(), Mean.empty()


def _as_divisor(count: Int[Array, ""], total: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.maximum(count, 1).astype(total.dtype)
