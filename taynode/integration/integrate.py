"""The one place that calls diffrax: a solve with its evaluations counted."""

from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu

from .._types import Scalar
from ..solvers import Adams
from .control import controller_for_adams, PlainNorm, WatchedController
from .failure import last_point
from .nfe import cost_of
from .plain import plain
from .problem import Problem
from .solution import saved, time_and_state, with_fields
from .start import start


def integrate(problem: Problem, *, wrap: Callable[[Any], Any] | None = None) -> dfx.Solution:
    """Solve, and count the evaluations.

    The state may be augmented: control and the first step look at its plain part. Never raises for
    a solve that fails; its result says so. `wrap` may put something around the solver that has a
    `first_state`, made from that of the solver inside.
    """
    problem, spent, num_probes = start(_with_matching_control(problem))
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


def _terms(problem: Problem) -> list[Any]:
    return jtu.tree_leaves(problem.terms, is_leaf=lambda x: isinstance(x, dfx.AbstractTerm))


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
