"""Weights that do not depend on measurements."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from .base import AbstractWeight, is_finite, known_values, Measurement, State, Status


Schedule = Callable[[Int[Array, ""]], ArrayLike]


class AbstractFixed(AbstractWeight[State]):
    """A weight that does not depend on measurements."""

    def normalizer(self, state: State) -> Float[Array, ""]:
        """The divisor of the objective: 1."""
        del state
        return jnp.ones((), float)

    def is_due(self, state: State) -> Bool[Array, ""]:
        """Whether the next `update` can use a measurement: never."""
        del state
        return jnp.array(False)


class Constant(AbstractFixed[tuple[()]]):
    """A weight that stays the same."""

    value: float

    def __check_init__(self):
        if not (is_finite(self.value) and self.value >= 0):
            raise ValueError(f"A weight must be a number of at least 0, got {self.value!r}.")

    def init(self) -> tuple[()]:
        """The state before training."""
        return ()

    def __call__(self, state: tuple[()]) -> Float[Array, ""]:
        """The present weight."""
        del state
        return jnp.asarray(self.value, float)

    def update(
        self,
        state: tuple[()],
        *,
        nfe: Measurement | None = None,
        loss: Measurement | None = None,
        penalty: Measurement | None = None,
    ) -> tuple[()]:
        """The state after a step of training; see `AbstractWeight.update`."""
        del nfe, loss, penalty
        return state

    def status(self, state: tuple[()]) -> Status:
        """What the weight is doing."""
        del state
        return Status("fixed", f"The weight is {self.value:g} throughout.")


class Scheduled(AbstractFixed[Int[Array, ""]]):
    """A weight that is a function of the step, such as a schedule of optax."""

    schedule: Schedule

    def init(self) -> Int[Array, ""]:
        """The state before training."""
        return jnp.array(0)

    def __call__(self, state: Int[Array, ""]) -> Float[Array, ""]:
        """The present weight."""
        return jnp.asarray(self.schedule(state), float)

    def update(
        self,
        state: Int[Array, ""],
        *,
        nfe: Measurement | None = None,
        loss: Measurement | None = None,
        penalty: Measurement | None = None,
    ) -> Int[Array, ""]:
        """The state after a step of training; see `AbstractWeight.update`."""
        del nfe, loss, penalty
        return state + 1

    def status(self, state: Int[Array, ""]) -> Status:
        """What the weight is doing."""
        step = int(known_values(state))
        value = float(self(state))
        return Status("fixed", f"The weight follows its schedule: {value:g} at step {step}.")


def as_weight(weight: Any) -> AbstractWeight:
    """A weight from a number, from a schedule, or from a weight."""
    if isinstance(weight, AbstractWeight):
        return weight
    if isinstance(weight, type):
        raise TypeError(f"`weight` is a class. Did you mean `{weight.__name__}(...)`?")
    if callable(weight):
        schedule: Any = weight
        return Scheduled(schedule)
    if eqx.is_array_like(weight):
        return Constant(float(weight))
    raise TypeError(
        "`weight` must be a number, a function of the step, or a weight such as "
        f"`tn.Budget(nfe=40)`, got {weight!r}."
    )
