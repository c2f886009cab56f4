"""Marks on the decisions of step-size control."""

from typing import Any

import diffrax as dfx
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from ..solvers.wrapping import PassesOnTolerances
from .names import KEEP_STEP, NEXT_T0


class _Marked(PassesOnTolerances, dfx.AbstractAdaptiveStepSizeController):
    """Gives names to the decision about a step, and to its end."""

    controller: Any

    def __init__(self, controller: Any):
        self.controller = controller

    def wrap(self, direction):
        """Never called: diffrax has done so before the loop begins."""
        raise NotImplementedError

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        """Never called: diffrax has done so before the loop begins."""
        raise NotImplementedError

    def adapt_step_size(
        self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
    ):
        """Adapt the step size, and name the results."""
        keep_step, next_t0, *others = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
        )
        keep_step = checkpoint_name(jnp.asarray(keep_step), KEEP_STEP)
        return keep_step, checkpoint_name(next_t0, NEXT_T0), *others


def marked(controller: Any) -> Any:
    """Mark decisions of a controller that may reject steps."""
    if isinstance(controller, dfx.AbstractAdaptiveStepSizeController):
        return _Marked(controller)
    return controller
