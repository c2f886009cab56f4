"""A weight that makes a model as cheap as a loss allows."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._types import RealScalarLike
from .base import check_state, is_finite, known_values, Status
from .controller import AbstractControlled, ControlState, Known, LARGEST_ERROR
from .window import Window


NAMES = {
    "unmeasured": "No loss was measured yet: pass `loss=` to `update`.",
    "inactive": "The loss is above {limit:.4g}, the largest that is allowed: the weight is 0.",
    "holding": "The loss is held near {limit:.4g}; the weight is {weight:.3g}.",
    "cheapest": "The evaluations do not fall any more, and the loss is below {limit:.4g}. The "
    "weight is {weight:.3g}.",
}


class LossBudget(AbstractControlled):
    """Make a model as cheap as possible while its loss stays near a reference.

    The weight rises while the loss is below `reference + rtol * |reference| + atol`, and falls
    while it is above. It is 0 until the loss is first below.

    **Arguments:**

    - `reference`: a loss, or a function from the step to a loss, such as the recorded course of an
        unregularized run.
    - `rtol`, `atol`: how much more loss is allowed. One of them must be positive.
    """

    reference: float | int | Callable[[Int[Array, ""]], RealScalarLike]
    rtol: float | int = 0.01
    atol: float | int = 0.0

    def __check_init__(self):
        for name in ("rtol", "atol"):
            if not is_finite(value := getattr(self, name)):
                raise ValueError(f"`{name}` must be a finite number, got {value!r}.")
        if not callable(self.reference) and not is_finite(self.reference):
            raise ValueError(
                "`reference` must be a finite number, or a function from the step to a loss, got "
                f"{self.reference!r}."
            )
        if self.rtol < 0 or self.atol < 0 or self.rtol + self.atol == 0:
            raise ValueError(
                "`rtol` and `atol` must not be negative, and one of them must be positive, got "
                f"{self.rtol} and {self.atol}."
            )
        if not callable(self.reference) and self.rtol * abs(self.reference) + self.atol == 0:
            raise ValueError("`reference` is 0, of which `rtol` allows nothing: pass `atol`.")

    def error(self, window: Window) -> Float[Array, ""]:
        """How far the loss is below its limit, in units of what is allowed above the reference."""
        limit, allowed = self._limit(window.step)
        distance = LARGEST_ERROR * (limit - window.loss.value) / allowed
        return jnp.where(window.loss.count > 0, distance, jnp.nan)

    def _limit(self, step: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The largest loss that is allowed, and how much that is above the reference."""
        reference = self.reference(step) if callable(self.reference) else self.reference
        reference = jnp.asarray(reference, float)
        allowed = self.rtol * jnp.abs(reference) + self.atol
        return reference + allowed, allowed

    def status(self, state: Known) -> Status:
        """What the weight is doing."""
        check_state(state, ControlState)
        state = known_values(state)
        if state.spread.count == 0:
            name = "unmeasured"
        elif not state.is_active:
            name = "inactive"
        else:
            name = "cheapest" if state.num_holds > 0 and state.error > 0 else "holding"
        limit = float(self._limit(jnp.asarray(state.window.step))[0])
        return Status(name, NAMES[name].format(limit=limit, weight=float(self(state))))
