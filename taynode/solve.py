"""`diffeqsolve` with a regularizer."""

from collections.abc import Callable
from typing import Any, TYPE_CHECKING, TypeAlias

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import PRNGKeyArray, PyTree

from ._types import Args, BoolScalarLike, RealScalarLike, Y
from .adjoint import AcceptedStepAdjoint
from .integration.arguments import check_arguments, check_key, check_values, note_of_field
from .integration.discrete_event import merge_events
from .integration.failure import raise_if_failed, with_nonfinite_penalty
from .integration.initial_step import initial_step_size
from .integration.integrate import integrate
from .integration.problem import Problem, with_common_types
from .integration.solution import with_fields
from .quadrature import AbstractQuadrature, Penalized, Sampled
from .registry import MAX_STEPS
from .regularizers import AbstractRegularizer
from .regularizers.base import Setting
from .regularizers.combine import combine, Combined


if TYPE_CHECKING:
    Time: TypeAlias = RealScalarLike
    State: TypeAlias = Y
    Terms: TypeAlias = PyTree[dfx.AbstractTerm]
    Solver: TypeAlias = dfx.AbstractSolver
    Regularizers: TypeAlias = PyTree[AbstractRegularizer] | None
    Quadrature: TypeAlias = AbstractQuadrature
    Key: TypeAlias = PRNGKeyArray | None
    Saves: TypeAlias = dfx.SaveAt
    Control: TypeAlias = dfx.AbstractStepSizeController
    Adjoint: TypeAlias = dfx.AbstractAdjoint
    Event: TypeAlias = dfx.Event | None
else:
    # At run time, wrong values get an error of this library, which says what to pass.
    Time = State = Terms = Solver = Regularizers = Quadrature = Key = Saves = Control = Adjoint = (
        Event
    ) = Any


def diffeqsolve(
    terms: Terms,
    solver: Solver,
    t0: Time,
    t1: Time,
    dt0: RealScalarLike | Callable[..., RealScalarLike] | None,
    y0: State,
    args: Args = None,
    *,
    regularizer: Regularizers = None,
    quadrature: Quadrature = Sampled(),
    key: Key = None,
    saveat: Saves = dfx.SaveAt(t1=True),
    stepsize_controller: Control = dfx.ConstantStepSize(),
    adjoint: Adjoint = AcceptedStepAdjoint(),
    event: Event = None,
    max_steps: int | None = MAX_STEPS,
    throw: bool = True,
    progress_meter: dfx.AbstractProgressMeter = dfx.NoProgressMeter(),
    solver_state: PyTree = None,
    controller_state: PyTree = None,
    made_jump: BoolScalarLike | None = None,
    discrete_terminating_event: Callable[..., BoolScalarLike] | None = None,
) -> dfx.Solution:
    """Solve a differential equation, and compute a penalty on the path of its solution.

    This is `diffrax.diffeqsolve` with three more keywords. The penalty never influences the solver:
    steps and values are those of the plain system. Without a regularizer and with a given `dt0`,
    the result is that of diffrax, with its evaluations counted.

    A regularizer needs a slope: `terms` is an `ODETerm`, a `ControlTerm`, or a `MultiTerm` of them,
    whose slopes are summed. If Brownian motion drives one of the latter, the slope is the drift,
    and derivatives are those of the drift's own flow through the state.

    A path with a differentiable control X follows dy/dt = f(t, y, args) dX/dt. Total derivatives
    then include those of X. At a knot of an interpolation they are those from inside of the piece
    that ends there. Jumps at knots are not penalized. Steps across knots are inaccurate: pass
    `stepsize_controller=diffrax.ClipStepSizeController(controller, jump_ts=control.ts)`, or
    `step_ts=` if dX/dt is continuous.

    **Arguments:** those of `diffrax.diffeqsolve`, and

    - `regularizer`: the penalty, such as `tn.TotalDerivative(order=3)`, or any pytree of
        regularizers. `None` for a plain solve.
    - `quadrature`: the way to integrate the rate of the penalty along the path. The default
        `tn.Sampled()` evaluates it at a random time, which costs little. If the state is a batch,
        `tn.Sampled(batch_axis=0)` draws a time for each row. `tn.Augmented()` integrates with the
        accuracy of the solver, which costs several times as much. `tn.Backward()` computes just the
        gradient.
    - `key`: a random key. `tn.Sampled` needs one, and so do regularizers that draw noise. Pass
        another one at each training step.
    - `dt0`: as in diffrax, or a function like `tn.initial_step_size`, which also chooses the first
        step for `None`.

    **Returns:**

    A `diffrax.Solution`. Its `stats` have in addition

    - `"nfe"`: the number of evaluations of the vector field, per sample under `jax.vmap`: all
        stages of accepted and rejected steps, and the choice of the first step.
    - `"nfe_exact"`: `False` for implicit solvers and for a few others, where `"nfe"` counts stages.
    - `"nfe_by_term"`: for a `MultiTerm`, the number of each term, such as drift and diffusion.
        `"nfe"` is that of the first one.
    - `"penalty"`: the penalty, a pytree like `regularizer`. It is differentiable.
    - `"penalty_known"`: `False` if `"penalty"` is NaN and has just a gradient, see `tn.Backward`.
    - `"penalty_evaluations"`: the number of evaluations of the penalty's rate.
    - `"last_point"`: the end of the solve, if known; see `tn.diagnose`.
    """
    check_values(t0, t1, y0)
    problem = Problem(
        terms=terms,
        solver=solver,
        t0=t0,
        t1=t1,
        dt0=dt0,
        y0=y0,
        args=args,
        saveat=saveat,
        stepsize_controller=stepsize_controller,
        adjoint=adjoint,
        event=merge_events(event, discrete_terminating_event),
        max_steps=max_steps,
        throw=throw,
        progress_meter=progress_meter,
        solver_state=solver_state,
        controller_state=controller_state,
        made_jump=made_jump,
    )
    # Before compilation, values are known, and warnings can point to the user's line.
    check_arguments(problem)
    check_key(key)
    _check_quadrature(quadrature)
    if regularizer is not None:
        regularizer = combine(terms, regularizer)
        _check_regularized(problem)
    try:
        return _solve(problem, regularizer, quadrature, key)
    except (TypeError, ValueError, AttributeError) as error:
        # JAX names neither the adjoint nor a way out. Inside of `jax.jit` it fails after this.
        if "to a custom_vjp function" in str(error):
            error.add_note(
                f"`adjoint={type(problem.adjoint).__name__}()` has reverse mode only. Use "
                "`adjoint=diffrax.ForwardMode()` for `jax.jvp` and `jax.jacfwd`, or "
                "`adjoint=diffrax.DirectAdjoint()` for both modes."
            )
        elif note := note_of_field(problem):
            error.add_note(note)
        raise


@eqx.filter_jit
def _solve(
    problem: Problem, regularizer: Combined | None, quadrature: Any, key: PRNGKeyArray | None
) -> dfx.Solution:
    problem = with_common_types(problem)
    if regularizer is None:
        solution = integrate(problem)
    else:
        regularizer = regularizer.in_solve(_setting(problem))
        solution = _with_penalty(problem, regularizer, quadrature.solve(problem, regularizer, key))
    stats = {name: x for name, x in solution.stats.items() if name != "num_probes"}
    solution = with_fields(solution, stats=stats)
    return raise_if_failed(solution) if problem.throw else solution


def _setting(problem: Problem) -> Setting:
    """What regularizers may know of the solve."""
    controller, solver = problem.stepsize_controller, problem.solver
    if not problem.is_adaptive:
        rtol = atol = norm = None
    else:
        rtol, atol, norm = controller.rtol, controller.atol, controller.norm

    def first_step(vector_field, t, y, args, rtol, atol):
        term = dfx.ODETerm(vector_field)
        order = solver.error_order(term) or solver.order(term)
        options = {} if norm is None else {"norm": norm}
        return initial_step_size(
            term, t, problem.t1, y, args, order=order, rtol=rtol, atol=atol, **options
        )

    setting = Setting(problem.t0, problem.t1, solver, rtol, atol, norm, first_step)
    if not problem.is_stochastic:
        return setting
    return setting._replace(terms=problem.terms, dt0=problem.dt0)


def _with_penalty(problem: Problem, regularizer: Combined, outcome: Penalized) -> dfx.Solution:
    solution = outcome.solution
    point = solution.stats.get("last_point")
    t_end = problem.t1 if point is None else point.time
    penalty = regularizer.finalize(outcome.integral, problem.t0, t_end)
    if outcome.known:
        solution = with_nonfinite_penalty(solution, penalty)
    else:
        # The value becomes NaN. The gradient stays.
        without_value = lambda x: x + jax.lax.stop_gradient(jnp.nan - x)
        penalty = jtu.tree_map(without_value, penalty)
    stats = {
        "penalty": penalty,
        "penalty_known": outcome.known,
        "penalty_evaluations": outcome.evaluations,
    }
    return with_fields(solution, stats={**solution.stats, **stats})


def _check_quadrature(quadrature: Any) -> None:
    if not isinstance(quadrature, AbstractQuadrature):
        hint = " Did you forget the parentheses?" if isinstance(quadrature, type) else ""
        raise TypeError(
            "`quadrature` must be a quadrature such as `tn.Sampled()` or `tn.Augmented()`, "
            f"got {quadrature!r}.{hint}"
        )


def _check_regularized(problem: Problem) -> None:
    if isinstance(problem.adjoint, dfx.ImplicitAdjoint):
        raise ValueError(
            "`adjoint=ImplicitAdjoint()` cannot be used with `regularizer`: it differentiates a "
            "steady state, which does not depend on the path."
        )
    if not sum(jnp.size(y) for y in jtu.tree_leaves(problem.y0)):
        raise ValueError("`y0` has no elements, so there is nothing to regularize.")
