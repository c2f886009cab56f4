"""Step-size control that sees the plain system alone, and what it learns on the way."""

from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp

from ..solvers import AdamsController
from .plain import plain


class Watch(NamedTuple):
    """The state of the controller inside, and what was seen of the solve."""

    inner: Any
    # Attempts that began behind a jump, where first-same-as-last solvers evaluate once more.
    num_restarts: Any
    restarting: Any
    # The size of the step that would come next.
    step: Any


class WatchedController(dfx.AbstractAdaptiveStepSizeController):
    """Hands everything on to another controller, without the penalty.

    It wraps the controller and not its norm, since users nest controllers of their own. A step so
    small that time stands still ends the solve, which would otherwise go on to `max_steps`.
    """

    controller: dfx.AbstractAdaptiveStepSizeController
    restarting: Any

    def __init__(self, controller: Any, restarting: Any = False):
        self.controller, self.restarting = controller, restarting

    @property
    def rtol(self):
        """The relative tolerance."""
        return self.controller.rtol

    @property
    def atol(self):
        """The absolute tolerance."""
        return self.controller.atol

    @property
    def norm(self):
        """The norm of the plain state; implicit solvers use it, too."""
        return PlainNorm(self.controller.norm)

    def wrap(self, direction):
        """For solves forward or backward in time."""
        return WatchedController(self.controller.wrap(direction), self.restarting)

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        """The end of the first step, and the first state."""
        next_t1, inner = self.controller.init(
            plain(terms), t0, t1, plain(y0), dt0, args, func, error_order
        )
        return next_t1, self.resume(inner, next_t1 - t0)

    def resume(self, inner: Any, step: Any) -> Watch:
        """The state from which a solve goes on, given that of the controller inside."""
        return Watch(inner, jnp.zeros((), jnp.int32), jnp.asarray(self.restarting), step)

    def adapt_step_size(
        self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
    ):
        """Whether to keep the step, and the next one."""
        keep_step, next_t0, next_t1, made_jump, inner, result = self.controller.adapt_step_size(
            t0,
            t1,
            plain(y0),
            plain(y1_candidate),
            args,
            plain(y_error),
            error_order,
            controller_state.inner,
        )
        stuck = _time_stands_still(t0, t1, next_t0, next_t1, keep_step)
        result = dfx.RESULTS.where(stuck, dfx.RESULTS.dt_min_reached, result)
        restarting = controller_state.restarting
        watch = Watch(
            inner,
            controller_state.num_restarts + restarting.astype(jnp.int32),
            jnp.where(keep_step, jnp.asarray(made_jump), restarting),
            next_t1 - next_t0,
        )
        return keep_step, next_t0, next_t1, made_jump, watch, result


def _time_stands_still(t0, t1, next_t0, next_t1, keep_step):
    """Whether the next step is none, or a rejected one cannot become smaller.

    Times have so many digits and no more; such steps would be repeated for ever.
    """
    few_digits = t1 - t0 <= 64 * jnp.finfo(jnp.result_type(t1)).eps * jnp.abs(t1)
    not_smaller = next_t1 - next_t0 >= t1 - t0
    stuck = (next_t1 <= next_t0) | (few_digits & not_smaller)
    # A step of length zero that was kept is fine if a controller then moves over a jump.
    return jnp.where(keep_step, (t1 <= t0) & (next_t0 <= t0), stuck)


class PlainNorm(eqx.Module):
    """A norm of the augmented state that leaves the penalty out."""

    norm: Any

    def __call__(self, x: Any) -> Any:
        """The norm of the plain part."""
        return self.norm(plain(x))


def controller_for_adams(controller: Any) -> Any:
    """The same control for the variable-order method: a PID controller, wherever it is nested."""
    if isinstance(controller, AdamsController):
        return controller
    if isinstance(controller, dfx.PIDController):
        return AdamsController(controller)
    if isinstance(controller, dfx.ClipStepSizeController):
        inner = controller_for_adams(controller.controller)
        return eqx.tree_at(lambda c: c.controller, controller, inner)
    raise TypeError(
        "`Adams` chooses its own steps and orders, so `stepsize_controller` must be a "
        f"`diffrax.PIDController`, got `{type(controller).__name__}`."
    )
