"""The front door: diffrax's `diffeqsolve` with a regularizer."""

import warnings
from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.core import Tracer

from ._types import Args, Key, Scalar, Y
from .integration.failure import raise_if_failed, with_nonfinite_penalty
from .integration.integrate import integrate
from .integration.problem import Problem, with_common_types
from .integration.solution import with_fields
from .quadrature import AbstractQuadrature, Augmented
from .regularizers.combine import check_regularizers


@eqx.filter_jit
def diffeqsolve(
    terms: Any,
    solver: dfx.AbstractSolver,
    t0: Scalar,
    t1: Scalar,
    dt0: Scalar | Callable[..., Any] | None,
    y0: Y,
    args: Args = None,
    *,
    regularizer: Any = None,
    quadrature: Any = Augmented(),
    key: Key | None = None,
    saveat: dfx.SaveAt = dfx.SaveAt(t1=True),
    stepsize_controller: dfx.AbstractStepSizeController = dfx.ConstantStepSize(),
    adjoint: dfx.AbstractAdjoint = dfx.RecursiveCheckpointAdjoint(),
    event: dfx.Event | None = None,
    max_steps: int | None = 4096,
    throw: bool = True,
    progress_meter: dfx.AbstractProgressMeter = dfx.NoProgressMeter(),
    solver_state: Any = None,
    controller_state: Any = None,
    made_jump: Any = None,
) -> dfx.Solution:
    """Solve a differential equation and charge the path of its solution.

    It is `diffrax.diffeqsolve` with three more keywords. The penalty never steers the solver: steps
    and values are those of the plain system.

    **Arguments:** those of `diffrax.diffeqsolve`, and

    - `regularizer`: what is charged along the path, such as `tn.TotalDerivative(order=3)`, or any
        pytree of regularizers. With `None` this is diffrax's solve with its evaluations counted.
    - `quadrature`: how the charge is integrated: `tn.Augmented()`, `tn.Sampled()`, which is nearly
        free, or `tn.Backward()`.
    - `key`: a random key, for regularizers and quadratures that draw something.
    - `dt0`: if `None`, then the first step is that of `tn.initial_step_size`. It may also be a
        function like that one.

    **Returns:**

    A `diffrax.Solution`, whose `stats` have besides diffrax's own

    - `"nfe"`: the evaluations of the vector field, per sample under `jax.vmap`: all stages of
        accepted and rejected steps, and those that chose the first step.
    - `"nfe_exact"`: False for implicit solvers and for other than ordinary differential equations,
        where `"nfe"` counts stages.
    - `"penalty"`: a pytree like `regularizer`. Differentiable.
    - `"penalty_known"`: False if `"penalty"` has a gradient but no value, see `tn.Backward`.
    - `"penalty_evaluations"`: how often the rate of the penalty was evaluated.
    - `"last_point"`: with `throw=False`, where the solve ended; `tn.diagnose` explains it.
    """
    problem = with_common_types(
        Problem(
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
            event=event,
            max_steps=max_steps,
            throw=throw,
            progress_meter=progress_meter,
            solver_state=solver_state,
            controller_state=controller_state,
            made_jump=made_jump,
        )
    )
    _warn_of_unreachable_tolerance(problem)
    if regularizer is None:
        solution, stats = integrate(problem), {}
    else:
        _check(problem, regularizer, quadrature)
        outcome = quadrature.solve(problem, regularizer, key)
        solution = with_nonfinite_penalty(outcome.solution, outcome.penalty)
        stats = {
            "penalty": outcome.penalty,
            "penalty_known": outcome.known,
            "penalty_evaluations": outcome.evaluations,
        }
    stats = {**solution.stats, **stats}
    del stats["num_probes"]
    solution = with_fields(solution, stats=stats)
    return raise_if_failed(solution) if throw else solution


def _check(problem: Problem, regularizer: Any, quadrature: Any) -> None:
    check_regularizers(problem.terms, regularizer)
    if not isinstance(quadrature, AbstractQuadrature):
        hint = " Did you forget the parentheses?" if isinstance(quadrature, type) else ""
        raise TypeError(
            "`quadrature` must be one such as `tn.Augmented()` or `tn.Sampled()`, "
            f"got {quadrature!r}.{hint}"
        )
    if isinstance(problem.adjoint, dfx.ImplicitAdjoint):
        raise ValueError(
            "`adjoint=ImplicitAdjoint()` differentiates a steady state, which does not depend on "
            "the path to it, so it cannot be used with `regularizer`."
        )


def _warn_of_unreachable_tolerance(problem: Problem) -> None:
    controller = problem.stepsize_controller
    if not isinstance(controller, dfx.AbstractAdaptiveStepSizeController):
        return
    rtol = controller.rtol
    if isinstance(rtol, Tracer):
        return
    dtypes = {jnp.result_type(y) for y in jtu.tree_leaves(problem.y0)}
    for dtype in dtypes:
        # With a relative tolerance of zero, the absolute one is meant to decide.
        if 0 < float(rtol) < jnp.finfo(dtype).eps:
            warnings.warn(
                f"`rtol={float(rtol):.2g}` is below what {dtype} can resolve "
                f"({jnp.finfo(dtype).eps:.2g}), so steps are rejected for rounding errors. Loosen "
                'it, or use double precision: `jax.config.update("jax_enable_x64", True)`.',
                stacklevel=2,
            )
