"""The first step of a solve, and its first evaluation of the vector field."""

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
    """Choose the first step, and pass the vector field at the start to the solver.

    **Returns:**

    The problem with a `dt0`, the number of evaluations so far, and the number of those that only
    served to choose the step. The latter are evaluations of the plain system.
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
            # Gradients come from the backward solve, which does not allow one through the slope.
            slope = jax.lax.stop_gradient(slope)
        state = state_from_slope(solver, problem.terms, problem.t0, problem.y0, problem.args, slope)
        problem = problem.replace(solver_state=state, made_jump=None)
    return problem, spent, spent - int(hand_on)


def _error_order(problem: Problem) -> RealScalarLike:
    """The order for the choice of the first step: that of the controller, or of the solver."""
    given = getattr(innermost(problem.stepsize_controller), "error_order", None)
    if given is not None:
        return given
    # Adams begins with low orders; the reference implementations take 5.
    order = 5 if isinstance(problem.solver, Adams) else problem.solver.error_order(problem.terms)
    if order is None:
        raise ValueError(
            f"`dt0=None` needs the order of the solver, which `{type(problem.solver).__name__}` "
            "does not define. Pass `dt0`, or `PIDController(..., error_order=...)`."
        )
    return order
