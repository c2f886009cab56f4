"""A solver that reads each row of a joint batch at its own times."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Real

from ..regularizers.step import Step
from .observer import AbstractObserver


class RowReader(AbstractObserver):
    """Reads each row of the state at its own times, and notes which times have been reached.

    Output times would read the whole batch once per row. This reads it once per step.
    """

    solver: dfx.AbstractSolver
    times: Real[Array, "points rows"]  # increasing in the direction of the solve
    axis: int = eqx.field(static=True)

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
        axis = self.axis % y.ndim
        return x.reshape(len(x), *(-1 if i == axis else 1 for i in range(y.ndim)))

    def _interpolate(self, t0, t1, y0, dense_info, times):
        """Dense output of one step, each row at its own times."""

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

        axes = {name: axis_of(info) for name, info in dense_info.items()}
        out_axes = jtu.tree_map(lambda y: self.axis % y.ndim, y0)

        def at(info, t):
            return self.solver.interpolation_cls(t0=t0, t1=t1, **info).evaluate(t)

        rows = jax.vmap(at, in_axes=(axes, 0), out_axes=out_axes)
        return jax.vmap(rows, in_axes=(None, 0))(dense_info, times)
