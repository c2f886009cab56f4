"""A solver that reads its state at given times, or each row of a joint batch at its own times."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Real

from ..regularizers.trial import Step
from ..solvers.explicit import has_usual_steps
from .observer import AbstractObserver


# The packages of solvers whose dense output is linear in the states and stages of a step.
KNOWN = "diffrax", "taynode"


class RowReader(AbstractObserver):
    """Reads each row of the state at its own times, and notes which times have been reached.

    Output times would read the whole batch once per row. This reads it once per step.
    """

    solver: dfx.AbstractSolver
    times: Real[Array, "points rows"]  # increasing in the direction of the solve
    axis: int | None = eqx.field(static=True)  # of the rows; `None` if there is one reading for all
    combines: bool = eqx.field(static=True)  # see `combines_stages`

    def first_note(self, t0, y0):
        """The initial state as the reading at each of the times."""
        start = jtu.tree_map(lambda y: jnp.stack([y] * len(self.times)), y0)
        return start, self.times <= t0

    def observe(self, note, step: Step, args, dense_info):
        """Read the rows whose times lie in the step."""
        del args
        (t0, t1, y0), (states, reached) = step[:3], note
        now = (self.times > t0) & (self.times <= t1)
        read = self._interpolate(t0, t1, y0, dense_info, jnp.clip(self.times, t0, t1))
        where = lambda y, new, old: jnp.where(self._along_rows(now, y), new, old)
        return jtu.tree_map(where, y0, read, states), reached | now

    def _along_rows(self, x, y):
        axis = None if self.axis is None else self.axis % y.ndim
        return x.reshape(len(x), *(-1 if i == axis else 1 for i in range(y.ndim)))

    def _interpolate(self, t0, t1, y0, dense_info, times):
        """Dense output of one step, each row at its own times."""
        if self.combines:
            return self._combine(t0, t1, y0, dense_info, times)

        def axis_of(info):
            """The axis of rows in a pytree like the state, whose leaves may have axes of stages."""
            if jtu.tree_structure(info) != jtu.tree_structure(y0):
                return None
            axes = [
                x.ndim - y.ndim + self.axis % y.ndim
                if x.ndim >= y.ndim and x.shape[x.ndim - y.ndim :] == y.shape
                else None
                for x, y in zip(jtu.tree_leaves(info), jtu.tree_leaves(y0), strict=True)
            ]
            return None if None in axes else jtu.tree_unflatten(jtu.tree_structure(y0), axes)

        # A part that all rows share may have as many elements as there are rows.
        shared = getattr(self.solver.interpolation_cls, "shared", ())
        axes = {
            name: None if name in shared else axis_of(info) for name, info in dense_info.items()
        }
        out_axes = jtu.tree_map(lambda y: self.axis % y.ndim, y0)

        def at(info, t):
            return self.solver.interpolation_cls(t0=t0, t1=t1, **info).evaluate(t)

        rows = jax.vmap(at, in_axes=(axes, 0), out_axes=out_axes)
        return jax.vmap(rows, in_axes=(None, 0))(dense_info, times)

    def _combine(self, t0, t1, y0, dense_info, times):
        """Dense output as a combination of the stages, with weights for each row.

        The stages are not read from the array that they are stacked in, so that it need not exist.
        """

        def weights_at(t):
            number = 2 + len(jtu.tree_leaves(dense_info["k"])[0])
            units = jnp.eye(number, dtype=t.dtype)
            evaluate = self.solver.interpolation_cls
            return jax.vmap(
                lambda x: evaluate(t0=t0, t1=t1, y0=x[0], y1=x[1], k=x[2:]).evaluate(t), out_axes=-1
            )(units)

        weights = jax.vmap(jax.vmap(weights_at))(times)

        def combination(y0, y1, k):
            # The transpose of this is a stack, which cancels with that of the stages.
            stages = jax.lax.split(k, [1] * len(k), axis=0)
            parts = [y0, y1, *(jnp.squeeze(stage, 0) for stage in stages)]
            each = jnp.moveaxis(weights, -1, 0).astype(y0.dtype)
            return sum(self._along_rows(w, y0) * part for w, part in zip(each, parts, strict=True))

        return jtu.tree_map(combination, y0, dense_info["y1"], dense_info["k"])


def combines_stages(solver) -> bool:
    """Whether dense output is known to be a combination of the states and stages of a step."""
    return (
        has_usual_steps(solver) and solver.interpolation_cls.__module__.partition(".")[0] in KNOWN
    )
