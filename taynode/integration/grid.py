"""Fixed steps that the backward solve of an adjoint can take, too."""

from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp


class FixedGrid(dfx.AbstractStepSizeController[Any, None]):
    """Step from time to time of a grid, forwards or backwards, from any of its times to any other.

    `diffrax.StepTo` goes only from the first of its times to the last, so it cannot be used with
    `diffrax.BacksolveAdjoint`, which solves backwards in time, and from one saved time to the next.

    **Arguments:**

    - `ts`: the times, increasing or decreasing.
    """

    ts: Any = eqx.field(converter=jnp.asarray)

    def __check_init__(self):
        if self.ts.ndim != 1 or self.ts.size < 2:
            raise ValueError(f"`ts` must be at least two times, got shape {self.ts.shape}.")

    def wrap(self, direction: Any) -> "FixedGrid":
        """In the direction of the solve, in which times increase."""
        ts = self.ts * direction
        ts = jnp.where(ts[0] <= ts[-1], ts, ts[::-1])
        ts = eqx.error_if(ts, ts[1:] <= ts[:-1], "`ts` must be strictly increasing or decreasing.")
        return FixedGrid(ts)

    def init(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Any,
        dt0: Any,
        args: Any,
        func: Callable[..., Any],
        error_order: Any,
    ) -> tuple[Any, Any]:
        """The end of the first step, and which time is next."""
        del terms, y0, args, func, error_order
        if dt0 is not None:
            raise ValueError("`dt0` must be `None`: steps are those of the grid.")
        # Rounding of `t1` is no reason to refuse; diffrax ends a solve a few digits before it.
        rounding = 32 * jnp.finfo(t1.dtype).eps * jnp.abs(t1)
        t0 = eqx.error_if(
            t0,
            self.ts[-1] < t1 - rounding,
            "`FixedGrid(ts)` ends before the solve does: `ts` must reach from `t0` to `t1`.",
        )
        following = jnp.searchsorted(self.ts, t0, side="right")
        return self._at(following), following + 1

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Any,
        y1_candidate: Any,
        args: Any,
        y_error: Any,
        error_order: Any,
        controller_state: Any,
    ) -> tuple[Any, ...]:
        """The next step; diffrax ends it where the solve ends."""
        del t0, y0, y1_candidate, args, y_error, error_order
        following = controller_state
        return True, t1, self._at(following), False, following + 1, dfx.RESULTS.successful

    def _at(self, index: Any) -> Any:
        return self.ts[jnp.minimum(index, len(self.ts) - 1)]
