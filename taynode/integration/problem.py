"""What a solve is asked for."""

import dataclasses
from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import lineax.internal as lxi

from .._types import Args, Scalar, Y


@dataclasses.dataclass(frozen=True)
class Problem:
    """What `diffrax.diffeqsolve` is asked for, with times and states as arrays."""

    terms: Any
    solver: dfx.AbstractSolver
    t0: Scalar
    t1: Scalar
    dt0: Any  # a number, a function that chooses it, or `None`
    y0: Y
    args: Args
    saveat: dfx.SaveAt
    stepsize_controller: Any
    adjoint: Any
    event: dfx.Event | None
    max_steps: int | None
    throw: bool
    progress_meter: dfx.AbstractProgressMeter
    solver_state: Any
    controller_state: Any
    made_jump: Any

    def replace(self, **changes: Any) -> "Problem":
        """The same problem with changes."""
        return dataclasses.replace(self, **changes)

    @property
    def is_ode(self) -> bool:
        """Whether it is one ordinary differential equation."""
        return isinstance(self.terms, dfx.ODETerm)

    @property
    def is_backsolve(self) -> bool:
        """Whether gradients come from a second solve backward in time."""
        return isinstance(self.adjoint, dfx.BacksolveAdjoint)

    @property
    def is_steady(self) -> bool:
        """Whether a steady state is differentiated; that adjoint wants to be left alone."""
        return isinstance(self.adjoint, dfx.ImplicitAdjoint)

    @property
    def looks_back(self) -> bool:
        """Whether to save where the solve ends, which is of interest if it may fail."""
        return self.is_ode and not (self.throw or self.is_backsolve or self.is_steady)

    @property
    def direction(self) -> Scalar:
        """1 or -1: forward or backward in time."""
        return jnp.where(self.t0 < self.t1, 1, -1).astype(jnp.result_type(self.t0))

    @property
    def saves(self) -> list[dfx.SubSaveAt]:
        """The parts of `saveat`."""
        return jtu.tree_leaves(self.saveat.subs, is_leaf=is_subsaveat)


def is_subsaveat(x: Any) -> bool:
    """For use as `is_leaf`."""
    return isinstance(x, dfx.SubSaveAt)


def with_common_types(problem: Problem) -> Problem:
    """Times and states as arrays of the types in which diffrax will solve."""
    given = [problem.t0, problem.t1, *(s.ts for s in problem.saves if s.ts is not None)]
    if problem.dt0 is not None and not callable(problem.dt0):
        given.append(problem.dt0)
    with jax.numpy_dtype_promotion("standard"):
        dtype = jnp.result_type(*given)
        if not jnp.issubdtype(dtype, jnp.floating):
            dtype = lxi.default_floating_dtype()
        promote = lambda y: jnp.asarray(y, jnp.result_type(y, dtype))
        y0 = jtu.tree_map(promote, problem.y0)
    dt0 = problem.dt0
    if dt0 is not None and not callable(dt0):
        dt0 = jnp.asarray(dt0, dtype)
    t0, t1 = jnp.asarray(problem.t0, dtype), jnp.asarray(problem.t1, dtype)
    return problem.replace(t0=t0, t1=t1, dt0=dt0, y0=y0)
