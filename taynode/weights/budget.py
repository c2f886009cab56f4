"""A weight that keeps the evaluations of a solve at a budget."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._types import RealScalarLike
from .base import AbstractWeight, Measurement, Status
from .window import Spread, Window


# The logarithm of the weight changes by INTEGRAL times the relative error, and by DAMPING times the
# change of that error. Without damping the loop oscillates.
INTEGRAL, DAMPING = 2.3, 4.6
LARGEST_ERROR = 0.7
# Both are multiplied by a gain, which falls whenever the error changes its sign, and rises while it
# does not: how strongly evaluations respond differs by more than a decade between tasks.
LEAST_GAIN, FALLING_GAIN, RISING_GAIN = 1 / 32, 0.5, 1.2
# Evaluations come in steps of the solver: smaller errors are left alone.
DEAD_BAND = 0.02
# The first weight makes the penalty this share of the loss' spread.
FIRST_SHARE = 0.01
# The weight is 0 below e^-12 of the first one.
RANGE_BELOW = 12.0
# The evaluations respond if they fall by this factor before the weight has risen by three decades.
RESPONSE = 0.97
PATIENCE = 3 * math.log(10)
# A weight that was held is released if the evaluations rise by this factor.
RELEASE = 1.1

NAMES = {
    "unmeasured": "No evaluations were measured yet: pass `nfe=` to `update`.",
    "inactive": "The model needs {nfe:.4g} evaluations, less than the budget of {budget:g}: the "
    "weight is 0.",
    "holding": "The evaluations are {nfe:.4g} with a budget of {budget:g}; the weight is "
    "{weight:.3g}.",
    "approaching": "The evaluations are {nfe:.4g} on the way to a budget of {budget:g}; the weight "
    "is {weight:.3g}.",
    "infeasible": "The budget of {budget:g} evaluations is not reached: the least was {least:.4g}, "
    "and a weight a thousand times as large made no difference. The weight is held at "
    "{weight:.3g}. A larger tolerance, a solver with fewer stages, a shorter time interval or "
    "another regularizer would help.",
    "not responding": "The evaluations, {nfe:.4g}, did not fall while the weight rose by three "
    "decades. The weight is held at {weight:.3g}. This regularizer does not make this solver "
    "faster: try another order, or look at what limits the steps with `tn.diagnose`.",
}


class BudgetState(NamedTuple):
    """The state of a `Budget`.

    - `window`: measurements since the last adjustment.
    - `spread`: of the loss.
    - `log_weight`: the logarithm of the weight, if it is not 0.
    - `log_first`: the logarithm of the first weight that was not 0.
    - `is_active`: whether the weight is not 0.
    - `was_active`: whether it ever was.
    - `error`: the relative error of the last adjustment.
    - `gain`: how strongly the weight follows errors, at most 1.
    - `nfe`, `least_nfe`: the last evaluations, and the least since the weight was first active.
    - `falling_from`: the evaluations from which a response is awaited.
    - `fell_at`: the logarithm of the weight at which the evaluations last fell.
    - `has_responded`: whether they ever fell.
    - `is_held`: whether the weight is held because the evaluations do not respond.
    """

    window: Window
    spread: Spread
    log_weight: Float[Array, ""]
    log_first: Float[Array, ""]
    is_active: Bool[Array, ""]
    was_active: Bool[Array, ""]
    error: Float[Array, ""]
    gain: Float[Array, ""]
    nfe: Float[Array, ""]
    least_nfe: Float[Array, ""]
    falling_from: Float[Array, ""]
    fell_at: Float[Array, ""]
    has_responded: Bool[Array, ""]
    is_held: Bool[Array, ""]


class Budget(AbstractWeight[BudgetState]):
    """Keep the evaluations at a budget: the weight rises while there are too many of them.

    The weight is 0 until the evaluations first reach the budget, and 0 again if the model needs
    fewer without it. A budget that cannot be reached leaves the weight where the evaluations last
    fell; `status` says so.

    Scale the loss by c, and the weight is scaled by c. Add a constant to the loss, and nothing
    changes. The number of training steps need not be known.

    **Arguments:**

    - `nfe`: the evaluations to allow, in the units of what `update` is given: per sample, or of a
        joint solve of a batch.
    """

    nfe: float

    def __check_init__(self):
        if not self.nfe > 0:
            raise ValueError(f"`nfe` must be positive, got {self.nfe}.")

    def init(self) -> BudgetState:
        """The state before training."""
        number = lambda value: jnp.array(value, float)
        flag = lambda: jnp.array(False)
        return BudgetState(
            window=Window.first(),
            spread=Spread.empty(),
            log_weight=number(0.0),
            log_first=number(0.0),
            is_active=flag(),
            was_active=flag(),
            error=number(0.0),
            gain=number(1.0),
            nfe=number(math.nan),
            least_nfe=number(math.inf),
            falling_from=number(0.0),
            fell_at=number(0.0),
            has_responded=flag(),
            is_held=flag(),
        )

    def __call__(self, state: BudgetState) -> Float[Array, ""]:
        """The present weight."""
        weight = jnp.where(state.is_active, jnp.exp(state.log_weight), jnp.zeros(()))
        return jax.lax.stop_gradient(weight)

    def update(
        self,
        state: BudgetState,
        *,
        nfe: Measurement | None = None,
        loss: RealScalarLike | None = None,
        penalty: RealScalarLike | None = None,
    ) -> BudgetState:
        """The state after a step of training; see `AbstractWeight.update`."""
        nfe, loss, penalty = jax.lax.stop_gradient((nfe, loss, penalty))
        window = state.window.add(nfe, loss, penalty)
        state = state._replace(window=window, spread=state.spread.add(loss))
        if nfe is None:
            return state
        is_ready = window.is_due & (window.nfe.count > 0)
        adjusted = self._adjust(state)
        return jax.tree.map(lambda new, old: jnp.where(is_ready, new, old), adjusted, state)

    def _adjust(self, state: BudgetState) -> BudgetState:
        """The state after an adjustment of the weight by the measurements of a window."""
        nfe = state.window.nfe.value
        error = jnp.clip(jnp.log(nfe / self.nfe), -LARGEST_ERROR, LARGEST_ERROR)
        begins = ~state.is_active & (error >= 0)
        gain = _next_gain(state.gain, state.error, error)
        change = INTEGRAL * jnp.where(jnp.abs(error) < DEAD_BAND, jnp.zeros_like(error), error)
        change = gain * (change + DAMPING * (error - state.error))
        first = jnp.where(state.was_active, state.log_first, jnp.log(self._first(state)))
        again = jnp.where(state.was_active, first - RANGE_BELOW + 1, first)
        log_weight = jnp.where(begins, again, state.log_weight + change)
        is_active = (state.is_active | begins) & (log_weight > first - RANGE_BELOW)
        state = state._replace(
            window=state.window.next(),
            log_first=jnp.where(begins, first, state.log_first),
            is_active=is_active,
            was_active=state.was_active | begins,
            error=error,
            gain=jnp.where(begins, jnp.ones_like(gain), gain),
            nfe=nfe,
        )
        return _with_patience(state, log_weight, begins)

    def _first(self, state: BudgetState) -> Float[Array, ""]:
        """The weight with which regularization begins."""
        penalty = state.window.penalty.value
        return FIRST_SHARE * state.spread.value / jnp.where(penalty > 0, penalty, 1.0)

    def status(self, state: BudgetState) -> Status:
        """What the weight is doing."""
        state = jax.device_get(state)
        if not math.isfinite(state.nfe):
            name = "unmeasured"
        elif not state.is_active:
            name = "inactive"
        elif state.is_held:
            name = "infeasible" if state.has_responded else "not responding"
        else:
            name = "holding" if abs(state.error) < 0.05 else "approaching"
        message = NAMES[name].format(
            nfe=float(state.nfe),
            budget=self.nfe,
            least=float(state.least_nfe),
            weight=float(self(state)),
        )
        return Status(name, message)


def _next_gain(
    gain: Float[Array, ""], before: Float[Array, ""], now: Float[Array, ""]
) -> Float[Array, ""]:
    rising = jnp.where(jnp.abs(now) < DEAD_BAND, 1.0, RISING_GAIN)
    factor = jnp.where(before * now < 0, FALLING_GAIN, rising)
    return jnp.clip(gain * factor, LEAST_GAIN, 1.0)


def _with_patience(
    state: BudgetState, log_weight: Float[Array, ""], begins: Bool[Array, ""]
) -> BudgetState:
    """Take a new weight, unless it has risen by three decades and the evaluations did not fall.

    Then the weight goes back to where the evaluations last fell, and is held there.
    """
    nfe = state.nfe
    # Training makes evaluations rise by itself, so a response is a fall from the largest since.
    falling_from = jnp.maximum(state.falling_from, nfe)
    fell = state.is_active & ~begins & (nfe < RESPONSE * falling_from)
    restart = begins | fell | (log_weight < state.fell_at)
    fell_at = jnp.where(restart, log_weight, state.fell_at)
    falling_from = jnp.where(restart, nfe, falling_from)
    is_lost = (log_weight - fell_at > PATIENCE) & (state.error > 0)
    is_kept = state.is_held & (state.error > 0) & (nfe < RELEASE * falling_from)
    is_held = is_lost | is_kept
    least = jnp.where(state.is_active, jnp.minimum(state.least_nfe, nfe), state.least_nfe)
    return state._replace(
        log_weight=jnp.where(is_held, jnp.where(is_lost, fell_at, state.log_weight), log_weight),
        is_held=is_held,
        least_nfe=least,
        falling_from=falling_from,
        fell_at=fell_at,
        has_responded=state.has_responded | fell,
    )
