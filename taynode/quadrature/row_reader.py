"""A solver that notes each row of a joint batch as it passes times of its own."""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu


class RowReader(dfx.AbstractWrappedSolver):
    """Steps as another solver does, and notes each row of the state as it passes its times.

    Output times would read the whole batch once for each row; this reads it once for each step.
    """

    solver: dfx.AbstractSolver
    times: Any  # points and rows, in the direction of the solve
    axis: int = eqx.field(static=True)
    # diffrax sets this for adjoints that cannot differentiate all kinds of loops.
    scan_kind: str | None = None

    @property
    def term_structure(self):
        """As the solver inside."""
        return self.solver.term_structure

    @property
    def interpolation_cls(self):
        """As the solver inside."""
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self):
        """As the solver inside."""
        return self.solver.term_compatible_contr_kwargs

    def order(self, terms):
        """As the solver inside."""
        return self.solver.order(terms)

    def error_order(self, terms):
        """As the solver inside."""
        return self.solver.error_order(terms)

    def func(self, terms, t0, y0, args):
        """As the solver inside."""
        return self.solver.func(terms, t0, y0, args)

    def init(self, terms, t0, t1, y0, args):
        """The state of the solver inside, and nothing read."""
        return self.first_state(self.solver.init(terms, t0, t1, y0, args), t0, y0)

    def first_state(self, inner, t0, y0):
        """The same, if the state of the solver inside is known."""
        start = jtu.tree_map(lambda y: jnp.stack([y] * len(self.times)), y0)
        return inner, (start, self.times <= t0)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """One step of the solver inside; rows whose time lies in it are read off."""
        inner, (states, reached) = solver_state
        solver = self.solver
        if self.scan_kind is not None and getattr(solver, "scan_kind", "") is None:
            solver = eqx.tree_at(
                lambda s: s.scan_kind, solver, self.scan_kind, is_leaf=lambda x: x is None
            )
        y1, y_error, dense_info, inner, result = solver.step(
            terms, t0, t1, y0, args, inner, made_jump
        )
        now = (self.times > t0) & (self.times <= t1)
        read = self._interpolate(t0, t1, y0, dense_info, jnp.clip(self.times, t0, t1))
        where = lambda y, new, old: jnp.where(self._along_rows(now, y), new, old)
        states = jtu.tree_map(where, y0, read, states)
        return y1, y_error, dense_info, (inner, (states, reached | now)), result

    def _along_rows(self, x, y):
        axis = self.axis % y.ndim
        return x.reshape(len(x), *(-1 if i == axis else 1 for i in range(y.ndim)))

    def _interpolate(self, t0, t1, y0, dense_info, times):
        """Dense output of one step, each row at its own times."""

        def axis_of(info):
            """Where rows are in something like the state, after any axes of stages."""
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
