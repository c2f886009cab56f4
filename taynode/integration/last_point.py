"""Where a solve ended."""

from typing import Any, NamedTuple

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import optimistix as optx

from .._types import Args, RealScalarLike, VectorField, Y


# Rounding errors of this many units make up most of a step.
FEW_ULPS = 64


class LastPoint(NamedTuple):
    """Where a solve ended.

    - `time`: its last time. Differentiable, since the time of an event is.
    - `next_step`: the step that would have been next; `None` on a grid.
    - `state`: the root mean square of the state.
    - `slope`: the root mean square of the vector field there; NaN unless the solve failed, and
        `None` with `throw=True`.
    - `error_finite`: whether the last attempted step had a finite error estimate.
    """

    time: Any
    next_step: Any
    state: Any
    slope: Any
    error_finite: Any

    @property
    def state_finite(self) -> Any:
        """Whether the state is free of NaN and infinity."""
        return jnp.isfinite(self.state)

    @property
    def is_stuck(self) -> Any:
        """Whether the next step is so small that time cannot advance by it."""
        if self.next_step is None:
            return jnp.zeros_like(self.state, bool)
        eps = jnp.finfo(jnp.result_type(self.time)).eps
        return jnp.abs(self.next_step) <= FEW_ULPS * eps * jnp.abs(self.time)


def size(y: Y) -> RealScalarLike:
    """The root mean square of all numbers of a state; infinite only if one of them is."""
    largest = optx.max_norm(y)
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, jnp.ones_like(largest))
    rms = optx.rms_norm(jtu.tree_map(lambda x: x / scale.astype(x.dtype), y))
    return jax.lax.stop_gradient(scale.astype(rms.dtype) * rms)


def slope_if(
    failed: Any, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args
) -> RealScalarLike:
    """The size of the vector field at a point, if any sample of a batch has failed, or else NaN.

    This is part of each training step, so it must cost nothing if all is well.
    """
    arrays, others = eqx.partition((vector_field, t, y, args), eqx.is_array)
    vector_field, t, y, args = eqx.combine(jax.lax.stop_gradient(arrays), others)
    evaluate = lambda: size(vector_field(t, y, args))
    unknown = lambda: jnp.full_like(size(y), jnp.nan)
    return jax.lax.cond(eqxi.unvmap_any(failed), evaluate, unknown)
