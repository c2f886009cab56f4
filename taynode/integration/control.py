"""Step-size control of the plain system inside a larger one, with observations of the solve."""

from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Bool, Int, PyTree

from .._types import Arrays, BoolScalarLike, Norm, RealScalarLike
from ..solvers import AdamsController
from ..solvers.wrapping import PassesOnTolerances
from .plain import plain


class Watch(NamedTuple):
    """The state of the inner controller, and observations of the solve.

    - `num_restarts`: the number of attempts right after a jump, where first-same-as-last solvers
        need one more evaluation.
    - `restarting`: whether the next attempt is one of those.
    - `step`: the size of the next step.
    - `error_finite`: whether the error estimate of the last attempt was finite. Attempts of length
        zero do not count.
    """

    inner: PyTree
    num_restarts: Int[Array, ""]
    restarting: Bool[Array, ""]
    step: RealScalarLike
    error_finite: Bool[Array, ""]


class WatchedController(PassesOnTolerances, dfx.AbstractAdaptiveStepSizeController):
    """Passes the plain part of states and terms to an inner controller, and observes the steps.

    It wraps the controller and not its norm, since users nest their own controllers. It never
    changes a decision of the inner controller.
    """

    controller: dfx.AbstractAdaptiveStepSizeController
    restarting: BoolScalarLike

    def __init__(self, controller: Any, restarting: BoolScalarLike = False):
        self.controller, self.restarting = controller, restarting

    @property
    def norm(self):
        """The norm of the plain state. Implicit solvers use it, too."""
        return PlainNorm(self.controller.norm)

    def wrap(self, direction):
        """Prepare for a solve forward or backward in time."""
        return WatchedController(self.controller.wrap(direction), self.restarting)

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        """Choose the first step."""
        next_t1, inner = self.controller.init(
            plain(terms), t0, t1, plain(y0), dt0, args, func, error_order
        )
        return next_t1, self.resume(inner, next_t1 - t0)

    def resume(self, inner: PyTree, step: RealScalarLike) -> Watch:
        """The first state of a solve, given that of the inner controller."""
        num_restarts, restarting = jnp.zeros((), jnp.int32), jnp.asarray(self.restarting)
        return Watch(inner, num_restarts, restarting, step, jnp.array(True))

    def adapt_step_size(
        self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
    ):
        """Accept or reject the step, and choose the next one."""
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
            # Once the step size has underflowed, steps of length zero follow. Their error is zero.
            jnp.where(t1 > t0, _all_finite(plain(y_error)), controller_state.error_finite),
        )
        return keep_step, next_t0, next_t1, made_jump, watch, result


def _all_finite(tree: Arrays) -> Bool[Array, ""]:
    finite = [jnp.all(jnp.isfinite(x)) for x in jtu.tree_leaves(tree)]
    return jnp.all(jnp.stack(finite)) if finite else jnp.array(True)


class PlainNorm(eqx.Module):
    """A norm of the augmented state without the penalty."""

    norm: Norm

    def __call__(self, x: PyTree) -> RealScalarLike:
        """Compute the norm of the plain part."""
        return self.norm(plain(x))


def innermost(controller: Any) -> Any:
    """The controller inside of wrappers such as `diffrax.ClipStepSizeController`."""
    while hasattr(controller, "controller"):
        controller = controller.controller
    return controller


def controller_for_adams(controller: Any) -> Any:
    """Put an `AdamsController` around the `PIDController`, which may be nested in others."""
    if isinstance(controller, AdamsController):
        return controller
    if isinstance(controller, dfx.PIDController):
        return AdamsController(controller)
    if isinstance(controller, dfx.ClipStepSizeController):
        inner = controller_for_adams(controller.controller)
        return eqx.tree_at(lambda c: c.controller, controller, inner)
    raise TypeError(
        "`solver=Adams()` changes its order, so `stepsize_controller` must be a "
        f"`diffrax.PIDController`, got `{type(controller).__name__}`."
    )
