"""The control loop by which a weight follows measurements."""

import abc
import math
from typing import Any, NamedTuple, TYPE_CHECKING, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .base import AbstractWeight, check_measurement, check_state, Measurement
from .window import Spread, Window


# The logarithm of the weight changes by INTEGRAL times the relative error, and by DAMPING times the
# change of that error. Without damping the loop oscillates.
INTEGRAL, DAMPING = 2.3, 4.6
LARGEST_ERROR = 0.7
LARGEST_CHANGE = INTEGRAL * LARGEST_ERROR
# A gain multiplies them. It falls if the loop oscillates and rises if it lags behind, because the
# evaluations of one task respond ten times as strongly to a weight as those of another.
LEAST_GAIN, MOST_GAIN, FALLING_GAIN, RISING_GAIN = 1 / 32, 4.0, 0.5, 1.2
# Evaluations come in steps of the solver: smaller errors are left alone.
DEAD_BAND = 0.02
# An error of less than one in twenty is near the goal.
NEAR = 0.05
# Smaller changes of the weight are noise of the measurements.
LARGE_CHANGE = 0.3
# The first weight makes the penalty this share of the loss' spread.
FIRST_SHARE = 0.01
# The weight is 0 below e^-12 of the first one.
RANGE_BELOW = 12.0
# The evaluations respond if they fall by this factor before the weight has risen by three decades,
# in no fewer adjustments than that.
RESPONSE, FEWEST_ADJUSTMENTS, MOST_HOLDS = 0.95, 8, 8
# Each measurement moves their smooth course by this share, so that noise is no response.
SMOOTHING = 0.5
PATIENCE = 3 * math.log(10)
# A weight that was held is released if the evaluations rise by this factor.
RELEASE = 1.1
# A weight three decades above the first one must not undo more than this share of what training has
# gained in loss, and less of it once the evaluations did not respond. If it does, it stays a decade
# below the last one that did not.
UNDONE, UNDONE_IN_VAIN, RETREAT = 0.5, 0.1, math.log(10)
# The loss has fallen if the difference is larger than its spread by this factor.
LEARNED = 2.0


class ControlState(NamedTuple):
    """The state of a weight that follows measurements.

    - `window`: measurements since the last adjustment.
    - `spread`: of the loss.
    - `log_weight`: the logarithm of the weight, if it is not 0.
    - `log_first`: the logarithm of the first weight that was not 0.
    - `is_active`: whether the weight is not 0.
    - `was_active`: whether it ever was.
    - `error`: the relative error of the last adjustment.
    - `change`: of the logarithm of the weight in the last adjustment.
    - `gain`: how strongly the weight follows errors.
    - `nfe`, `least_nfe`: the last evaluations, and the least since the weight was first active.
    - `course`: the smooth course of the evaluations.
    - `falling_from`: the evaluations from which a response is awaited.
    - `fell_at`: the logarithm of the weight at which the evaluations last fell.
    - `waited`: adjustments since the evaluations last fell.
    - `num_holds`: how often the weight was held since the evaluations last fell.
    - `has_responded`: whether they ever fell.
    - `is_held`, `was_held`: whether the weight is held because the evaluations do not respond, and
        whether it ever was.
    - `first_loss`, `least_loss`: the means of the first window and of the best one.
    - `kept_at`: the logarithm of the last weight that did not undo what training had gained.
    - `ceiling`: the largest logarithm of the weight.
    """

    window: Window
    spread: Spread
    log_weight: Float[Array, ""]
    log_first: Float[Array, ""]
    is_active: Bool[Array, ""]
    was_active: Bool[Array, ""]
    error: Float[Array, ""]
    change: Float[Array, ""]
    gain: Float[Array, ""]
    nfe: Float[Array, ""]
    least_nfe: Float[Array, ""]
    course: Float[Array, ""]
    falling_from: Float[Array, ""]
    fell_at: Float[Array, ""]
    waited: Int[Array, ""]
    num_holds: Int[Array, ""]
    has_responded: Bool[Array, ""]
    is_held: Bool[Array, ""]
    was_held: Bool[Array, ""]
    first_loss: Float[Array, ""]
    least_loss: Float[Array, ""]
    kept_at: Float[Array, ""]
    ceiling: Float[Array, ""]


if TYPE_CHECKING:
    Known: TypeAlias = ControlState
else:
    # At run time, anything else gets an error of this library, which says what to pass.
    Known = Any


class AbstractControlled(AbstractWeight[ControlState]):
    """A weight that rises while an error is positive, and falls while it is negative.

    The weight is 0 until the error is first positive, and 0 again where a much smaller weight would
    do. If the evaluations do not fall while the weight rises by three decades, the weight goes back
    to where they last fell and is held there. Later it tries once more, and twice as far. A weight
    that is so large that it undoes what training has gained in loss goes back for good.
    """

    @abc.abstractmethod
    def error(self, window: Window) -> Float[Array, ""]:
        """The error by the measurements of a window; NaN if they are missing."""

    def init(self) -> ControlState:
        """The state before training."""
        number = lambda value: jnp.array(value, float)
        flag = lambda: jnp.array(False)
        return ControlState(
            window=Window.first(),
            spread=Spread.empty(),
            log_weight=number(0.0),
            log_first=number(0.0),
            is_active=flag(),
            was_active=flag(),
            error=number(0.0),
            change=number(0.0),
            gain=number(1.0),
            nfe=number(math.nan),
            least_nfe=number(math.inf),
            course=number(0.0),
            falling_from=number(0.0),
            fell_at=number(0.0),
            waited=jnp.array(0, int),
            num_holds=jnp.array(0, int),
            has_responded=flag(),
            is_held=flag(),
            was_held=flag(),
            first_loss=number(math.nan),
            least_loss=number(math.inf),
            kept_at=number(-math.inf),
            ceiling=number(math.inf),
        )

    def __call__(self, state: Known) -> Float[Array, ""]:
        """The present weight."""
        check_state(state, ControlState)
        weight = jnp.where(state.is_active, jnp.exp(state.log_weight), jnp.zeros(()))
        return jax.lax.stop_gradient(weight)

    def normalizer(self, state: ControlState) -> Float[Array, ""]:
        """1 + the share of the penalty in the objective, as it was when regularization began."""
        whole = state.log_first - math.log(FIRST_SHARE)
        share = jnp.where(state.is_active, jnp.exp(state.log_weight - whole), jnp.zeros(()))
        return jax.lax.stop_gradient(1 + share)

    def is_due(self, state: ControlState) -> Bool[Array, ""]:
        """Whether the next `update` can adjust the weight."""
        return state.window.step + 1 >= state.window.due

    def update(
        self,
        state: Known,
        *,
        nfe: Measurement | None = None,
        loss: Measurement | None = None,
        penalty: Measurement | None = None,
    ) -> ControlState:
        """The state after a step of training; see `AbstractWeight.update`."""
        check_state(state, ControlState)
        for name, value in {"nfe": nfe, "loss": loss, "penalty": penalty}.items():
            check_measurement(name, value)
        nfe, loss, penalty = jax.lax.stop_gradient((nfe, loss, penalty))
        window = state.window.add(nfe, loss, penalty)
        state = state._replace(window=window, spread=state.spread.add(loss))
        error = jnp.clip(self.error(window), -LARGEST_ERROR, LARGEST_ERROR)
        is_ready = window.is_due & jnp.isfinite(error)
        # Most steps adjust nothing, and small operations take time, too.
        return jax.lax.cond(is_ready, _adjust, _leave, state, error)


# Not a lambda: outside of `jax.jit`, JAX would compile it again in each step.
def _leave(state: ControlState, error: Float[Array, ""]) -> ControlState:
    del error
    return state


def _adjust(state: ControlState, error: Float[Array, ""]) -> ControlState:
    """The state after an adjustment of the weight by the measurements of a window."""
    begins = ~state.is_active & (error >= 0)
    change = INTEGRAL * jnp.where(jnp.abs(error) < DEAD_BAND, jnp.zeros_like(error), error)
    # A weight that falls far below the budget comes back late: only a rising one is hurried.
    hurry = jnp.where(change > 0, jnp.maximum(state.gain, 1.0), jnp.ones_like(change))
    change = hurry * change + DAMPING * (error - state.error)
    change = jnp.minimum(state.gain, 1.0) * change
    change = jnp.clip(change, -LARGEST_CHANGE, LARGEST_CHANGE)
    gain = _next_gain(state, error, change)
    first = jnp.where(state.was_active, state.log_first, jnp.log(_first(state)))
    again = jnp.where(state.was_active, first - RANGE_BELOW / 2, first)
    log_weight = jnp.where(begins, again, state.log_weight + change)
    is_active = (state.is_active | begins) & (log_weight > first - RANGE_BELOW)
    state = _with_ceiling(state, error, first)
    state = state._replace(
        window=state.window.next(),
        log_first=jnp.where(begins, first, state.log_first),
        is_active=is_active,
        was_active=state.was_active | begins,
        error=error,
        change=jnp.where(begins, jnp.zeros_like(change), change),
        gain=jnp.where(begins, jnp.ones_like(gain), gain),
        nfe=jnp.where(state.window.nfe.count > 0, state.window.nfe.value, state.nfe),
    )
    state = _with_patience(state, log_weight, begins)
    return state._replace(log_weight=jnp.minimum(state.log_weight, state.ceiling))


def _with_ceiling(
    state: ControlState, error: Float[Array, ""], first: Float[Array, ""]
) -> ControlState:
    """Lower the ceiling if a large weight undoes what training has gained in loss."""
    is_known = state.window.loss.count > 0
    loss = state.window.loss.value
    first_loss = jnp.where(jnp.isnan(state.first_loss) & is_known, loss, state.first_loss)
    least_loss = jnp.where(is_known, jnp.minimum(state.least_loss, loss), state.least_loss)
    gained = first_loss - least_loss
    # NaN and infinity, if there is no loss, are no gain.
    has_learned = gained > LEARNED * state.spread.value
    share = jnp.where(state.was_held, UNDONE_IN_VAIN, UNDONE)
    is_undone = is_known & has_learned & (loss > least_loss + share * gained)
    is_large = state.is_active & (state.log_weight > first + PATIENCE)
    is_too_large = is_undone & is_large & (error > 0)
    kept_at = jnp.where(state.is_active & ~is_undone, state.log_weight, state.kept_at)
    lower = jnp.minimum(jnp.maximum(kept_at - RETREAT, first), state.ceiling)
    return state._replace(
        first_loss=first_loss,
        least_loss=least_loss,
        kept_at=kept_at,
        ceiling=jnp.where(is_too_large, lower, state.ceiling),
    )


def _first(state: ControlState) -> Float[Array, ""]:
    """The weight with which regularization begins."""
    penalty = state.window.penalty.value
    return FIRST_SHARE * state.spread.value / jnp.where(penalty > 0, penalty, 1.0)


def _next_gain(
    state: ControlState, error: Float[Array, ""], change: Float[Array, ""]
) -> Float[Array, ""]:
    """The gain after an adjustment: smaller if the loop oscillates, larger if it lags behind."""
    # Near the budget the sign of the error is noise.
    is_large = jnp.minimum(jnp.abs(state.error), jnp.abs(error)) > DEAD_BAND
    crosses = (state.error * error < 0) & is_large
    # A large gain may oscillate on one side of the budget.
    turned = jnp.minimum(jnp.abs(state.change), jnp.abs(change)) > LARGE_CHANGE
    turns = (state.change * change < 0) & turned & (state.gain > 1)
    rising = jnp.where(jnp.abs(error) < DEAD_BAND, 1.0, RISING_GAIN)
    factor = jnp.where(crosses | turns, FALLING_GAIN, rising)
    return jnp.clip(state.gain * factor, LEAST_GAIN, MOST_GAIN)


def _with_patience(
    state: ControlState, log_weight: Float[Array, ""], begins: Bool[Array, ""]
) -> ControlState:
    """Take a new weight, unless it has risen by three decades and the evaluations did not fall.

    Then the weight goes back to where the evaluations last fell, and is held there.
    """
    nfe = state.nfe
    is_new = begins | ~jnp.isfinite(state.course)
    course = jnp.where(is_new, nfe, state.course + SMOOTHING * (nfe - state.course))
    # Training makes evaluations rise by itself, so a response is a fall from the largest since.
    largest = jnp.fmax(state.falling_from, course)
    falling_from = jnp.where(state.is_held, state.falling_from, largest)
    fell = state.is_active & ~state.is_held & ~begins & (course < RESPONSE * falling_from)
    restart = begins | fell | (log_weight < state.fell_at)
    fell_at = jnp.where(restart, log_weight, state.fell_at)
    falling_from = jnp.where(restart, course, falling_from)
    waited = jnp.where(restart, 0, state.waited + 1)
    # Each time, it takes longer until a larger weight is tried again.
    has_waited = waited >= FEWEST_ADJUSTMENTS * 2**state.num_holds
    is_positive = state.error > 0
    # A second attempt goes twice as far.
    reach = jnp.where(state.num_holds == 0, PATIENCE, 2 * PATIENCE)
    # Near the goal a weight that rises may stop a rise of the evaluations, so it keeps a decade to
    # rise, up to six in all.
    is_near = jnp.abs(state.error) < NEAR
    room = jnp.minimum(log_weight - 2 / 3 * PATIENCE, state.log_first + PATIENCE)
    fell_at = jnp.where(is_near, jnp.maximum(fell_at, room), fell_at)
    least = jnp.maximum(fell_at, state.log_first)
    most = least + reach
    log_weight = jnp.where(jnp.isfinite(course), jnp.minimum(log_weight, most), log_weight)
    is_lost = ~state.is_held & is_positive & ~is_near & (log_weight == most)
    # Without measurements of evaluations, nobody knows whether they fall.
    is_lost = is_lost & (waited >= FEWEST_ADJUSTMENTS) & jnp.isfinite(course)
    # If they rise while the weight is back, it was needed after all.
    has_risen = state.is_held & (course >= RELEASE * falling_from)
    log_weight = jnp.where(has_risen & is_positive, least + PATIENCE, log_weight)
    is_kept = state.is_held & is_positive & ~has_waited & ~has_risen
    is_held = is_lost | is_kept
    # The first time, half of the way back shows whether the weight stops a rise.
    back = jnp.where(state.num_holds == 0, (fell_at + log_weight) / 2, fell_at)
    # A hold and a new attempt both begin to wait anew.
    changes = is_held != state.is_held
    least_nfe = jnp.where(state.is_active, jnp.minimum(state.least_nfe, nfe), state.least_nfe)
    return state._replace(
        log_weight=jnp.where(is_held, jnp.where(is_lost, back, state.log_weight), log_weight),
        is_held=is_held,
        was_held=state.was_held | is_held,
        least_nfe=least_nfe,
        course=course,
        falling_from=jnp.where(changes & ~is_held, course, falling_from),
        fell_at=jnp.where(has_risen & ~is_held, state.log_weight, fell_at),
        waited=jnp.where(changes, 0, waited),
        num_holds=jnp.where(
            fell | begins,
            0,
            jnp.where(is_lost, jnp.minimum(state.num_holds + 1, MOST_HOLDS), state.num_holds),
        ),
        has_responded=state.has_responded | fell,
    )
