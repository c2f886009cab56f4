"""Step-size control for a method that changes its order."""

from typing import NamedTuple

import diffrax as dfx
import jax.numpy as jnp
from jax import lax

from .._types import RealScalar, RealScalarLike, Y
from .tolerance import scaled_norm
from .wrapping import PassesOnTolerances


class AdamsError(NamedTuple):
    """The error estimate of a step of `Adams`, with the order for its controller.

    **Fields:**

    - `error`: the estimated error, a pytree like the state.
    - `order`: the power of the step size in the error of the next step.
    - `raised`: 1 if the next step has a higher order, and thus the size of this one; 0 otherwise.
    """

    error: Y
    order: RealScalar
    raised: RealScalarLike


class AdamsController(PassesOnTolerances, dfx.AbstractAdaptiveStepSizeController):
    """Chooses the steps of `Adams`, by the rules of Shampine and Gordon.

    A `diffrax.PIDController` accepts or rejects a step and proposes the next one, for the order
    that the solver has chosen. On top of that:

    - The next step aims at a part of the tolerance only, even if it must shrink for that. A
      rejected step wastes two evaluations.
    - The next step is between half and twice the last one. If the order has risen, it is as long.
    - A rejected step is at least halved. Its error was underestimated, so the past points do not
      predict the path. At the start there are no past points, and the error is proportional to the
      square of the step, so a single rejection finds the right size.

    **Arguments:**

    - `controller`: a `diffrax.PIDController`.
    - `target`: the part of the tolerance that the next step aims at.
    """

    controller: dfx.PIDController
    target: int | float

    def __init__(self, controller: dfx.PIDController, target: int | float = 0.05):
        if not isinstance(controller, dfx.PIDController):
            raise ValueError(
                "`controller` of `AdamsController` must be a `diffrax.PIDController`, got "
                f"`{type(controller).__name__}`. Put other controllers around `AdamsController`."
            )
        self.controller, self.target = controller, target

    def wrap(self, direction):
        """Prepare for a solve forward or backward in time."""
        return AdamsController(self.controller.wrap(direction), self.target)

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        """Choose the first step."""
        return self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)

    def adapt_step_size(
        self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
    ):
        """Accept or reject the step, and choose the next one."""
        del error_order
        if not isinstance(y_error, AdamsError):
            raise ValueError("`AdamsController` works only with `solver=Adams()`.")
        error = y_error.error
        ends = lax.stop_gradient((y0, y1_candidate))
        size = scaled_norm(error, *ends, self.rtol, self.atol, self.norm)
        order = y_error.order.astype(size.dtype)
        keep_step, next_t0, next_t1, made_jump, controller_state, result = (
            self.controller.adapt_step_size(
                t0, t1, y0, y1_candidate, args, error, order, controller_state
            )
        )
        step, proposed = jnp.asarray(t1 - t0), next_t1 - next_t0
        # An error of zero gives infinity, and a gradient of NaN, unless it is cut off here. As in
        # diffrax, the choice of a step is not differentiated.
        aimed = jnp.minimum((self.target / size) ** (1 / order), 2)
        aimed = lax.stop_gradient(aimed).astype(step.dtype)
        kept = jnp.minimum(proposed, jnp.maximum(aimed, 0.5) * step)
        kept = jnp.where(y_error.raised > 0, step, kept)
        # The first order is that of the start. A non-finite error does not predict a size.
        starting = (order <= 2) & jnp.isfinite(size)
        shorter = jnp.where(starting, jnp.maximum(aimed, 0.01) * step, proposed)
        rejected = jnp.minimum(shorter, 0.5 * step)
        step = jnp.where(keep_step, kept, rejected)
        if self.controller.dtmin is not None:
            step = jnp.maximum(step, self.controller.dtmin)
        return keep_step, next_t0, next_t0 + step, made_jump, controller_state, result
