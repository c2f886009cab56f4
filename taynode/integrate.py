"""The one place that calls diffrax: a solve with its evaluations counted."""

import dataclasses
from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import lineax.internal as lxi

from ._types import Args, Scalar, Y
from .augment import plain
from .control import controller_for_adams, PlainNorm, WatchedController
from .failure import last_point
from .initial_step import initial_step_size
from .nfe import cost_of, state_from_slope, takes_first_slope
from .solvers import Adams


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


def integrate(problem: Problem, *, wrap: Callable[[Any], Any] | None = None) -> dfx.Solution:
    """Solve, and count the evaluations.

    The state may be augmented: control and the first step look at its plain part. Never raises for
    a solve that fails; its result says so. `wrap` may put something around the solver that has a
    `first_state`, made from that of the solver inside.
    """
    problem, spent, num_probes = _start(_with_matching_control(problem))
    cost = cost_of(problem.solver)
    if wrap is not None:
        solver, state = wrap(problem.solver), problem.solver_state
        if state is not None:
            state = solver.first_state(state, problem.t0 * problem.direction, problem.y0)
        problem = problem.replace(solver=solver, solver_state=state)
    solution, num_restarts, next_step = _solve_watched(problem)
    exact = cost.exact and all(isinstance(term, dfx.ODETerm) for term in _terms(problem))
    stats = {
        **solution.stats,
        "nfe": spent + cost.attempt * solution.stats["num_steps"] + cost.restart * num_restarts,
        "nfe_exact": exact and not (problem.is_steady and cost.start),
        "num_probes": num_probes,
    }
    if problem.looks_back:
        (ts, _), (ys, end) = saved(solution)
        solution = with_fields(solution, ts=ts, ys=ys)
    elif problem.is_backsolve and not problem.throw and all(s.t1 for s in problem.saves):
        ts, ys = plain(saved(solution))
        place = jnp.sum(jnp.isfinite(ts)) - 1
        end = jtu.tree_map(lambda x: x[place][None], (ts, ys))
    else:
        return with_fields(solution, stats=stats)
    t, y = jtu.tree_map(lambda x: x[0], end)
    failed = jnp.invert(dfx.is_okay(solution.result))
    field = dfx.ODETerm(plain(problem.terms.vector_field)).vf
    stats["last_point"] = last_point(field, problem.args, t, y, next_step, failed)
    return with_fields(solution, stats=stats)


def _solve_watched(problem: Problem) -> tuple[dfx.Solution, Scalar, Scalar]:
    """The call of diffrax, how often the solver began anew, and the step that would be next."""
    saveat, controller, adjoint = problem.saveat, problem.stepsize_controller, problem.adjoint
    state = problem.controller_state
    if problem.looks_back:
        subs = saveat.subs, dfx.SubSaveAt(t1=True, fn=time_and_state)
        saveat = eqx.tree_at(lambda s: s.subs, saveat, subs, is_leaf=lambda x: x is None)
    adaptive = isinstance(controller, dfx.AbstractAdaptiveStepSizeController)
    watched = adaptive and not problem.is_steady
    if watched:
        restarting = False if problem.made_jump is None else problem.made_jump
        controller = WatchedController(controller, restarting)
        state = None if state is None else controller.resume(state, problem.dt0)
        saveat = eqx.tree_at(lambda s: s.controller_state, saveat, True)
    if problem.is_backsolve:
        adjoint = _backward_adjoint(problem)
    solution = dfx.diffeqsolve(
        problem.terms,
        problem.solver,
        problem.t0,
        problem.t1,
        problem.dt0,
        problem.y0,
        problem.args,
        saveat=saveat,
        stepsize_controller=controller,
        adjoint=adjoint,
        event=problem.event,
        max_steps=problem.max_steps,
        throw=False,
        progress_meter=problem.progress_meter,
        solver_state=problem.solver_state,
        controller_state=state,
        made_jump=problem.made_jump,
    )
    if not watched:
        return solution, 0, problem.dt0
    watch: Any = solution.controller_state
    inner = watch.inner if problem.saveat.controller_state else None
    next_step = jax.lax.stop_gradient(watch.step) * problem.direction
    return with_fields(solution, controller_state=inner), watch.num_restarts, next_step


def saved(solution: dfx.Solution) -> tuple[Any, Any]:
    """The times and values that were saved, whose structure is that of `saveat`."""
    return solution.ts, solution.ys


def time_and_state(t: Scalar, y: Y, args: Args) -> tuple[Scalar, Y]:
    """What to save to know where a solve ended."""
    del args
    return t, plain(y)


def with_fields(solution: dfx.Solution, **fields: Any) -> dfx.Solution:
    """A solution with other contents; `Solution` is a frozen module."""
    names = list(fields)
    return eqx.tree_at(
        lambda s: [getattr(s, name) for name in names],
        solution,
        list(fields.values()),
        is_leaf=lambda x: x is None,
    )


def _terms(problem: Problem) -> list[Any]:
    return jtu.tree_leaves(problem.terms, is_leaf=lambda x: isinstance(x, dfx.AbstractTerm))


def _start(problem: Problem) -> tuple[Problem, int, int]:
    """Choose the first step and hand its evaluation on.

    Also tells how many evaluations that took, and how many of them were of the plain system just to
    choose the step.
    """
    solver, controller = problem.solver, problem.stepsize_controller
    adaptive = isinstance(controller, dfx.AbstractAdaptiveStepSizeController)
    choose = problem.is_ode and adaptive and (problem.dt0 is None or callable(problem.dt0))
    hand_on = problem.is_ode and problem.solver_state is None and takes_first_slope(solver)
    hand_on = hand_on and not problem.is_steady
    if callable(problem.dt0) and not choose:
        raise ValueError(
            "`dt0` can be a function only for an `ODETerm` with an adaptive `stepsize_controller`, "
            f"got `{type(problem.terms).__name__}` and `{type(controller).__name__}`."
        )
    spent = cost_of(solver).start if problem.solver_state is None else 0
    if not (choose or hand_on):
        return problem, spent, 0
    plain_term = dfx.ODETerm(plain(problem.terms.vector_field))
    plain_y0 = plain(problem.y0)
    if hand_on:
        slope = problem.terms.vf(problem.t0, problem.y0, problem.args)
    else:
        slope = plain_term.vf(problem.t0, plain_y0, problem.args)
    if choose:
        select = problem.dt0 or initial_step_size
        dt0 = select(
            plain_term,
            problem.t0,
            problem.t1,
            plain_y0,
            problem.args,
            order=_error_order(problem),
            rtol=controller.rtol,
            atol=controller.atol,
            norm=controller.norm,
            slope=plain(slope),
        )
        problem = problem.replace(dt0=dt0)
        spent = 2
    if hand_on:
        if problem.is_backsolve:
            # Its gradients come from the backward solve; a slope with a gradient is refused there.
            slope = jax.lax.stop_gradient(slope)
        state = state_from_slope(solver, problem.terms, problem.t0, problem.y0, problem.args, slope)
        problem = problem.replace(solver_state=state, made_jump=None)
    return problem, spent, spent - int(hand_on)


def _error_order(problem: Problem) -> Scalar:
    """The order by which the first step is chosen: what the controller was told goes first."""
    controller = problem.stepsize_controller
    while hasattr(controller, "controller"):
        controller = controller.controller
    told = getattr(controller, "error_order", None)
    if told is not None:
        return told
    # Adams begins with low orders; this is what the reference implementations take.
    order = 5 if isinstance(problem.solver, Adams) else problem.solver.error_order(problem.terms)
    if order is None:
        raise ValueError(
            f"`dt0=None` needs the order of `{type(problem.solver).__name__}`, which it does not "
            "tell; pass `dt0`, or `PIDController(..., error_order=...)`."
        )
    return order


def _with_matching_control(problem: Problem) -> Problem:
    """Adams needs the tolerances and norm of the control, and tells it the order in use."""
    if not isinstance(problem.solver, Adams):
        return problem
    controller = controller_for_adams(problem.stepsize_controller)
    solver = problem.solver.with_tolerances(
        controller.rtol, controller.atol, PlainNorm(controller.norm)
    )
    return problem.replace(solver=solver, stepsize_controller=controller)


def _backward_adjoint(problem: Problem) -> dfx.BacksolveAdjoint:
    """The backward solve is controlled by what the plain adjoint would be controlled by."""
    options = dict(problem.adjoint.kwargs)
    if "stepsize_controller" in options:
        controller = options["stepsize_controller"]
    else:
        # diffrax would hand on the one of the forward solve, turned into its direction of time.
        controller = problem.stepsize_controller.wrap(jnp.where(problem.t0 < problem.t1, 1, -1))
    if isinstance(controller, dfx.AbstractAdaptiveStepSizeController):
        controller = WatchedController(controller)
    options["stepsize_controller"] = controller
    options.setdefault("throw", problem.throw)
    return type(problem.adjoint)(**options)
