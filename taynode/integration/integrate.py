"""The call of diffrax, with its evaluations counted."""

import warnings
from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu

from .._types import RealScalarLike, Y
from ..solvers import Adams
from .control import controller_for_adams, PlainNorm, Watch, WatchedController
from .last_point import LastPoint, size, slope_if
from .nfe import costs_of
from .plain import plain
from .problem import Problem
from .solution import also_saving, saved, split, time_and_state, with_fields
from .start import start


def integrate(
    problem: Problem, *, wrap: Callable[[dfx.AbstractSolver], Any] | None = None
) -> dfx.Solution:
    """Solve a problem with diffrax, and count the evaluations of the vector field.

    Quadratures call this function. It raises no error if a solve fails: the `result` of the
    solution reports the failure, and `tn.diffeqsolve` raises the error.

    **Arguments:**

    - `problem`: the problem. Its state may be larger than that of the user. Step-size control and
        the choice of the first step use the plain state alone.
    - `wrap`: a function that wraps `problem.solver` in another solver. The latter must have a
        method `first_state(inner_state, t0, y0)`, which computes its state from the inner one.

    **Returns:**

    A `diffrax.Solution`. Its `stats` have in addition `"nfe"`, `"nfe_exact"`, `"num_probes"` (the
    number of evaluations that only served to choose the first step) and, if known, `"last_point"`
    (the end of the solve).
    """
    problem, spent, num_probes = start(_with_matching_control(problem))
    costs = costs_of(problem.solver, problem.terms)
    is_known = isinstance(problem.solver, dfx.AbstractItoSolver | dfx.AbstractStratonovichSolver)
    if wrap is not None:
        solver, state = wrap(problem.solver), problem.solver_state
        if state is not None:
            state = solver.first_state(state, problem.t0 * problem.direction, problem.y0)
        problem = problem.replace(solver=solver, solver_state=state)
    with warnings.catch_warnings():
        if wrap is not None and is_known:
            # diffrax looks into a wrapper, but not into one in another, such as `HalfSolver`.
            warnings.filterwarnings("ignore", ".*is not marked as converging to either")
        solution, watch = _solve_watched(problem)
    solution, end = _take_end(problem, solution)
    num_restarts = 0 if watch is None else watch.num_restarts
    exact = all(isinstance(term, dfx.ODETerm | dfx.ControlTerm) for term in _terms(problem))
    num_steps = solution.stats["num_steps"]
    counts = [spent + cost.attempt * num_steps + cost.restart * num_restarts for cost in costs]
    stats = {
        **solution.stats,
        "nfe": counts[0],
        "nfe_exact": exact
        and all(cost.exact and not (problem.is_steady and cost.start) for cost in costs),
        "num_probes": num_probes,
    }
    if isinstance(problem.terms, dfx.MultiTerm):
        stats["nfe_by_term"] = tuple(counts)
    if end is not None:
        stats["last_point"] = _last_point(problem, solution, watch, *end)
    return with_fields(solution, stats=stats)


def _solve_watched(problem: Problem) -> tuple[dfx.Solution, Watch | None]:
    """Call diffrax, and return the solution and the observations of an adaptive solve."""
    saveat, controller, adjoint = problem.saveat, problem.stepsize_controller, problem.adjoint
    state = problem.controller_state
    if problem.saves_end:
        saveat = also_saving(saveat, dfx.SubSaveAt(t1=True, fn=time_and_state))
    watched = problem.is_adaptive and not problem.is_steady
    if watched:
        restarting = False if problem.made_jump is None else problem.made_jump
        controller = WatchedController(controller, restarting)
        state = None if state is None else controller.resume(state, problem.dt0)
        saveat = eqx.tree_at(lambda s: s.controller_state, saveat, True)
    if problem.is_backsolve:
        adjoint = _backward_adjoint(problem)
    watched_problem = problem.replace(
        saveat=saveat,
        stepsize_controller=controller,
        adjoint=adjoint,
        throw=False,
        controller_state=state,
    )
    solution = dfx.diffeqsolve(**vars(watched_problem))
    if not watched:
        return solution, None
    watch: Any = solution.controller_state
    inner = watch.inner if problem.saveat.controller_state else None
    return with_fields(solution, controller_state=inner), watch


def _take_end(problem: Problem, solution: dfx.Solution) -> tuple[dfx.Solution, Any]:
    """Return the solution without added outputs, and the time and state of its end, if known."""
    if problem.saves_end:
        solution, _, end = split(solution)
        return solution, jtu.tree_map(lambda x: x[0], end)
    if problem.is_backsolve and all(sub.t1 for sub in problem.saves):
        ts, ys = plain(saved(solution))
        # The end is the last finite entry: after an early end, infinities follow.
        place = jnp.sum(jnp.isfinite(ts)) - 1
        return solution, jtu.tree_map(lambda x: x[place], (ts, ys))
    return solution, None


def _last_point(
    problem: Problem, solution: dfx.Solution, watch: Watch | None, t: RealScalarLike, y: Y
) -> LastPoint:
    next_step, error_finite = problem.dt0, jnp.array(True)
    if watch is not None:
        next_step = jax.lax.stop_gradient(watch.step) * problem.direction
        error_finite = watch.error_finite
    slope = None
    if problem.is_ode and not problem.throw:
        failed = jnp.invert(dfx.is_okay(solution.result))
        plain_term = dfx.ODETerm(plain(problem.terms.vector_field))
        slope = slope_if(failed, plain_term.vf, t, y, problem.args)
    return LastPoint(t, next_step, size(y), slope, error_finite)


def _terms(problem: Problem) -> list[dfx.AbstractTerm]:
    several = problem.terms
    if isinstance(several, dfx.MultiTerm):
        several = several.terms
    return jtu.tree_leaves(several, is_leaf=lambda x: isinstance(x, dfx.AbstractTerm))


def _with_matching_control(problem: Problem) -> Problem:
    """Give the tolerances and the norm to Adams, and the order of Adams to the controller."""
    if not isinstance(problem.solver, Adams):
        return problem
    controller = controller_for_adams(problem.stepsize_controller)
    solver = problem.solver.with_tolerances(
        controller.rtol, controller.atol, PlainNorm(controller.norm)
    )
    return problem.replace(solver=solver, stepsize_controller=controller)


def _backward_adjoint(problem: Problem) -> dfx.BacksolveAdjoint:
    """Restrict the step-size control of the backward solve to the plain adjoint."""
    options = dict(problem.adjoint.kwargs)
    if "stepsize_controller" in options:
        controller = options["stepsize_controller"]
    else:
        # As in diffrax, that of the forward solve, wrapped for its direction of time.
        controller = problem.stepsize_controller.wrap(jnp.where(problem.t0 < problem.t1, 1, -1))
    if isinstance(controller, dfx.AbstractAdaptiveStepSizeController):
        controller = WatchedController(controller)
    options["stepsize_controller"] = controller
    options.setdefault("throw", problem.throw)
    return type(problem.adjoint)(**options)
