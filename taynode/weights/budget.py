"""A weight that keeps the evaluations of a solve at a budget."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from .base import check_state, is_finite, known_values, Status
from .controller import AbstractControlled, ControlState, Known, NEAR
from .window import Window


# Late in training the evaluations rise and the weight lags behind, so a little less is aimed at.
AIM = 0.985
NAMES = {
    "unmeasured": "No evaluations were measured yet: {advice}.",
    "measuring": "The evaluations are {nfe:.4g} so far. The weight is 0 until step {due:d}, where "
    "the first mean of them is compared with the budget of {budget:g}.",
    "inactive": "The model needs {nfe:.4g} evaluations, less than the budget of {budget:g}: the "
    "weight is 0.",
    "holding": "The evaluations are {nfe:.4g} with a budget of {budget:g}; the weight is "
    "{weight:.3g}.",
    "approaching": "The evaluations are {nfe:.4g} on the way to a budget of {budget:g}; the weight "
    "is {weight:.3g}.",
    "infeasible": "The budget of {budget:g} evaluations is not reached: the least was {least:.4g}, "
    "and larger weights {why}. {held} {weight:.3g}. Train again with a budget above "
    "the least; a larger tolerance, a solver with fewer stages, a shorter time interval or another "
    "regularizer would lower it.",
    "not responding": "The evaluations, {nfe:.4g}, did not fall while the weight rose by three "
    "decades. {held} {weight:.3g}. If an untrained model needs about as many, they "
    "are the fewest that this solver makes: train again with a larger budget. They never change if "
    "steps are constant. Otherwise try another order, or `tn.advise` for what limits the steps.",
}
HELD, AGAIN = "The weight is held at", "A larger weight is tried once more,"
KEEP = "keep what `update` returns, `state = weight.update(state, ...)`"
UNKNOWN = " No penalty was measured: pass `penalty=` to `update`, since weights depend on it."


class Budget(AbstractControlled):
    """Keep the evaluations at a budget: the weight rises while there are too many of them.

    The weight is 0 until the evaluations first reach the budget, and 0 again if the model needs
    fewer without it. A budget that cannot be reached leaves the weight where the evaluations last
    fell, or where it does not undo what training has gained in loss; `status` says so. With
    `dt0=None` a solve takes at least about three steps, so a budget well below what an untrained
    model needs is rarely reached.

    The weight scales with the loss, and a constant in the loss changes nothing. The number of
    training steps need not be known.

    **Arguments:**

    - `nfe`: the evaluations to allow, in the same units as `nfe` in `update`: per sample, or of a
        joint solve of a batch.
    """

    nfe: float | int

    def __check_init__(self):
        if not (is_finite(self.nfe) and self.nfe > 0):
            raise ValueError(f"`nfe` must be a positive number, got {self.nfe!r}.")
        if self.nfe < 1:
            raise ValueError(
                f"`nfe` must be a number of evaluations, not a share of them, got {self.nfe!r}."
            )

    def error(self, window: Window) -> Float[Array, ""]:
        """The logarithm of the evaluations over those that are aimed at."""
        aim = AIM * self.nfe
        return jnp.where(window.nfe.count > 0, jnp.log(window.nfe.value / aim), jnp.nan)

    def status(self, state: Known) -> Status:
        """What the weight is doing."""
        check_state(state, ControlState)
        state = known_values(state)
        nfe, is_too_large = state.nfe, state.error > 0 and state.log_weight >= state.ceiling
        if not math.isfinite(nfe):
            # A mean over the first steps is not complete, but somebody did measure.
            nfe = state.window.nfe.total / max(state.window.nfe.count, 1)
            name = "measuring" if state.window.nfe.count > 0 else "unmeasured"
        elif not state.is_active:
            name = "inactive" if state.nfe <= self.nfe else "approaching"
        elif (state.num_holds > 0 or is_too_large) and state.least_nfe > self.nfe:
            name = "infeasible" if state.has_responded else "not responding"
        else:
            name = "holding" if abs(state.error) < NEAR else "approaching"
        message = NAMES[name].format(
            nfe=float(nfe),
            due=int(state.window.due),
            budget=self.nfe,
            least=float(state.least_nfe),
            weight=float(self(state)),
            why="undid what training had gained" if is_too_large else "made no difference",
            held=HELD if state.is_held or is_too_large else AGAIN,
            advice="pass `nfe=` to `update`" if state.window.step > 0 else KEEP,
        )
        window = state.window
        is_blind = window.nfe.count > 0 and window.penalty.count == 0
        return Status(name, message + UNKNOWN if is_blind else message)
