"""Step-size control that sees the plain system alone, and observes it."""

from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu

from ..solvers import AdamsController
from .plain import plain


class Watch(NamedTuple):
    """The state of the controller inside, and observations of the solve.

    - `num_restarts`: attempts right after a jump, where first-same-as-last solvers evaluate once
        more.
    - `restarting`: whether the next attempt is one of those.
    - `step`: the size of the next step.
    - `error_finite`: whether the error estimate of the last attempt was finite. Attempts of length
        zero do not count.
    """

    inner: Any
    num_restarts: Any
    restarting: Any
    step: Any
    error_finite: Any


class WatchedController(dfx.AbstractAdaptiveStepSizeController):
    """Forwards the plain part of everything to another controller, and observes the steps.

    It wraps the controller and not its norm, since users nest controllers of their own. It never
    changes a decision of the controller inside.
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
        num_restarts, restarting = jnp.zeros((), jnp.int32), jnp.asarray(self.restarting)
        return Watch(inner, num_restarts, restarting, step, jnp.array(True))

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
        restarting = controller_state.restarting
        watch = Watch(
            inner,
            controller_state.num_restarts + restarting.astype(jnp.int32),
            jnp.where(keep_step, jnp.asarray(made_jump), restarting),
            next_t1 - next_t0,
            # Steps of length zero, which have no error, follow if the step size falls to nothing.
            jnp.where(t1 > t0, _all_finite(plain(y_error)), controller_state.error_finite),
        )
        return keep_step, next_t0, next_t1, made_jump, watch, result


def _all_finite(tree: Any) -> Any:
    finite = [jnp.all(jnp.isfinite(x)) for x in jtu.tree_leaves(tree)]
    return jnp.all(jnp.stack(finite)) if finite else jnp.array(True)


class PlainNorm(eqx.Module):
    """A norm of the augmented state that leaves the penalty out."""

    norm: Any

    def __call__(self, x: Any) -> Any:
        """The norm of the plain part."""
        return self.norm(plain(x))


def innermost(controller: Any) -> Any:
    """The controller inside of all others, such as of `diffrax.ClipStepSizeController`."""
    while hasattr(controller, "controller"):
        controller = controller.controller
    return controller


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
