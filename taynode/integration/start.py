"""The start of a solve: its first step, and its first evaluation."""

import diffrax as dfx
import jax

from .._types import RealScalarLike
from ..solvers import Adams
from .control import innermost
from .initial_step import initial_step_size
from .nfe import cost_of, state_from_slope, takes_first_slope
from .plain import plain
from .problem import Problem


def start(problem: Problem) -> tuple[Problem, int, int]:
    """Choose the first step, and hand the vector field at the start to the solver.

    **Returns:**

    The problem with a `dt0`, the number of evaluations so far, and how many of them were made only
    to choose the step, with the plain system.
    """
    solver, controller = problem.solver, problem.stepsize_controller
    choose = (
        problem.is_ode and problem.is_adaptive and (problem.dt0 is None or callable(problem.dt0))
    )
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


def _error_order(problem: Problem) -> RealScalarLike:
    """The order by which the first step is chosen: that of the controller, or of the solver."""
    given = getattr(innermost(problem.stepsize_controller), "error_order", None)
    if given is not None:
        return given
    # Adams begins with low orders; this is what the reference implementations take.
    order = 5 if isinstance(problem.solver, Adams) else problem.solver.error_order(problem.terms)
    if order is None:
        raise ValueError(
            f"`dt0=None` needs the order of the solver, and `{type(problem.solver).__name__}` does "
            "not define it; pass `dt0`, or `PIDController(..., error_order=...)`."
        )
    return order
