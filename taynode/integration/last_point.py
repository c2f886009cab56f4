"""The end of a solve."""

from typing import NamedTuple

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import optimistix as optx
from jaxtyping import Array, Bool

from .._types import Args, BoolScalarLike, RealScalarLike, VectorField, Y


# A step of so few units in the last place of time is lost in rounding errors.
FEW_ULPS = 64


class LastPoint(NamedTuple):
    """The end of a solve.

    - `time`: the last time. It is differentiable, like the time of an event.
    - `next_step`: the size of the next step, which was not made; `None` on a grid.
    - `state`: the root mean square of the state.
    - `slope`: the root mean square of the vector field. It is NaN unless the solve failed, and
        `None` with `throw=True`.
    - `error_finite`: whether the last attempted step had a finite error estimate.
    """

    time: RealScalarLike
    next_step: RealScalarLike | None
    state: RealScalarLike
    slope: RealScalarLike | None
    error_finite: BoolScalarLike

    @property
    def state_finite(self) -> Bool[Array, "..."]:
        """Whether the state is free of NaN and infinity."""
        return jnp.isfinite(self.state)

    @property
    def is_stuck(self) -> Bool[Array, "..."]:
        """Whether the next step is so small that time cannot advance by it."""
        if self.next_step is None:
            return jnp.zeros_like(self.state, bool)
        eps = jnp.finfo(jnp.result_type(self.time)).eps
        return jnp.abs(self.next_step) <= FEW_ULPS * eps * jnp.abs(self.time)


def size(y: Y) -> RealScalarLike:
    """The root mean square of a state, without overflow; infinite only if an element is."""
    largest = optx.max_norm(y)
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, jnp.ones_like(largest))
    rms = optx.rms_norm(jtu.tree_map(lambda x: x / scale.astype(x.dtype), y))
    return jax.lax.stop_gradient(scale.astype(rms.dtype) * rms)


def slope_if(
    failed: BoolScalarLike, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args
) -> RealScalarLike:
    """The size of the vector field at a point if any sample of a batch has failed, else NaN.

    This is part of each training step, so it evaluates the vector field only after a failure.
    """
    arrays, others = eqx.partition((vector_field, t, y, args), eqx.is_array)
    vector_field, t, y, args = eqx.combine(jax.lax.stop_gradient(arrays), others)
    evaluate = lambda: size(vector_field(t, y, args))
    unknown = lambda: jnp.full_like(size(y), jnp.nan)
    return jax.lax.cond(eqxi.unvmap_any(failed), evaluate, unknown)
