"""Fixed steps, also for the backward solve of an adjoint."""

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Real

from .._types import IntScalarLike, RealScalar


class FixedGrid(dfx.AbstractStepSizeController[IntScalarLike, None]):
    """Steps from each time of a grid to the next, forwards or backwards.

    A solve may start and end at any times of the grid. `diffrax.StepTo` must go from the first of
    its times to the last, so it does not work with `diffrax.BacksolveAdjoint`, which solves
    backwards from each saved time to the one before.

    **Arguments:**

    - `ts`: the times, increasing or decreasing.
    """

    ts: Real[Array, " times"] = eqx.field(converter=jnp.asarray)

    def __check_init__(self):
        if self.ts.ndim != 1 or self.ts.size < 2:
            raise ValueError(
                f"`ts` must be a vector of at least two times, got shape {self.ts.shape}."
            )

    def wrap(self, direction):
        """Reverse the grid if needed, so that times increase in the direction of the solve."""
        ts = self.ts * direction
        ts = jnp.where(ts[0] <= ts[-1], ts, ts[::-1])
        ts = eqx.error_if(ts, ts[1:] <= ts[:-1], "`ts` must be strictly increasing or decreasing.")
        return FixedGrid(ts)

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        """Find the end of the first step. The state is the index of the time after it."""
        del terms, y0, args, func, error_order
        if dt0 is not None:
            raise ValueError(f"`dt0` must be `None` with `FixedGrid`, got {dt0!r}.")
        # Rounding of `t1` is allowed; diffrax ends a solve a few units in the last place before it.
        rounding = 32 * jnp.finfo(jnp.result_type(t1)).eps * jnp.abs(t1)
        t0 = eqx.error_if(
            t0,
            self.ts[-1] < t1 - rounding,
            "`FixedGrid(ts)` ends before the solve does: `ts` must reach from `t0` to `t1`.",
        )
        following = jnp.searchsorted(self.ts, t0, side="right")
        return self._at(following), following + 1

    def adapt_step_size(
        self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
    ):
        """Step to the next time of the grid; diffrax clips the step to the end of the solve."""
        del t0, y0, y1_candidate, args, y_error, error_order
        following = controller_state
        return True, t1, self._at(following), False, following + 1, dfx.RESULTS.successful

    def _at(self, index: IntScalarLike) -> RealScalar:
        return self.ts[jnp.minimum(index, len(self.ts) - 1)]
