"""The arguments of a solve."""

import dataclasses
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import lineax.internal as lxi
import numpy as np
from jaxtyping import PyTree

from .._types import Args, BoolScalarLike, RealScalar, RealScalarLike, Y
from ..terms import noise_of, slope_of


class Problem(eqx.Module):
    """The arguments of `diffrax.diffeqsolve`, which a quadrature may change before it solves.

    The fields are named like the arguments. `dt0` may also be a function that chooses the first
    step, see `tn.initial_step_size`. In the problem of a quadrature, times and states are arrays of
    the dtypes in which diffrax solves.
    """

    terms: Any
    solver: Any
    t0: RealScalarLike
    t1: RealScalarLike
    dt0: Any
    y0: Y
    args: Args
    saveat: Any
    stepsize_controller: Any
    adjoint: Any
    event: Any
    max_steps: int | None
    throw: bool
    progress_meter: dfx.AbstractProgressMeter
    solver_state: PyTree
    controller_state: PyTree
    made_jump: BoolScalarLike | None

    def replace(self, **changes: Any) -> "Problem":
        """Copy the problem with other values of some fields."""
        return dataclasses.replace(self, **changes)

    @property
    def is_ode(self) -> bool:
        """Whether this is an ordinary differential equation with one term."""
        return isinstance(self.terms, dfx.ODETerm)

    @property
    def slope_term(self) -> dfx.ODETerm:
        """The term of the slope dy/dt along the path, which a regularizer is evaluated with.

        It is that of the user, f(t, y, args) dX/dt if a control X drives the equation, and the
        drift if Brownian motion does. The solver makes its steps with `terms` all the same.
        """
        return slope_of(self.terms)

    @property
    def is_stochastic(self) -> bool:
        """Whether Brownian motion drives the equation."""
        return bool(noise_of(self.terms))

    @property
    def is_adaptive(self) -> bool:
        """Whether error estimates control the step size."""
        return isinstance(self.stepsize_controller, dfx.AbstractAdaptiveStepSizeController)

    @property
    def is_backsolve(self) -> bool:
        """Whether gradients come from a second solve backward in time."""
        return isinstance(self.adjoint, dfx.BacksolveAdjoint)

    @property
    def is_steady(self) -> bool:
        """Whether gradients are those of a steady state.

        `ImplicitAdjoint` allows neither to save the controller's state nor to pass a solver state.
        """
        return isinstance(self.adjoint, dfx.ImplicitAdjoint)

    @property
    def saves_end(self) -> bool:
        """Whether the end of the solve can be saved in addition to the output of the user.

        `BacksolveAdjoint` does not allow `SaveAt(subs=...)`, and each output time adds a segment to
        its backward solve.
        """
        return not (self.is_backsolve or self.is_steady)

    @property
    def direction(self) -> RealScalar:
        """1 or -1: forward or backward in time."""
        return jnp.where(self.t0 < self.t1, 1, -1).astype(jnp.result_type(self.t0))

    @property
    def saves(self) -> list[dfx.SubSaveAt]:
        """The parts of `saveat`."""
        return jtu.tree_leaves(self.saveat.subs, is_leaf=is_subsaveat)


def is_subsaveat(x: Any) -> bool:
    """For use as `is_leaf`."""
    return isinstance(x, dfx.SubSaveAt)


def time_dtype(problem: Problem) -> np.dtype:
    """The dtype of times in diffrax."""
    given = [problem.t0, problem.t1, *(s.ts for s in problem.saves if s.ts is not None)]
    if problem.dt0 is not None and not callable(problem.dt0):
        given.append(problem.dt0)
    with jax.numpy_dtype_promotion("standard"):
        dtype = jnp.result_type(*given)
    return dtype if jnp.issubdtype(dtype, jnp.inexact) else lxi.default_floating_dtype()


def state_dtypes(problem: Problem) -> set[np.dtype]:
    """The dtypes of the leaves of the state in diffrax."""
    time = time_dtype(problem)
    with jax.numpy_dtype_promotion("standard"):
        return {jnp.result_type(y, time) for y in jtu.tree_leaves(problem.y0)}


def with_common_types(problem: Problem) -> Problem:
    """Convert times and states to arrays of the dtypes in which diffrax solves."""
    dtype = time_dtype(problem)
    with jax.numpy_dtype_promotion("standard"):
        promote = lambda y: jnp.asarray(y, jnp.result_type(y, dtype))
        y0 = jtu.tree_map(promote, problem.y0)
    dt0 = problem.dt0
    if dt0 is not None and not callable(dt0):
        dt0 = jnp.asarray(dt0, dtype)
    t0, t1 = jnp.asarray(problem.t0, dtype), jnp.asarray(problem.t1, dtype)
    return problem.replace(t0=t0, t1=t1, dt0=dt0, y0=y0)
