"""Solving for the state and the integral in one call."""

from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import PRNGKeyArray, PyTree

from .._types import Args, BoolScalarLike, Rate, RealScalarLike, VectorField
from ..integration.integrate import integrate
from ..integration.plain import plain
from ..integration.problem import is_subsaveat, Problem
from ..integration.solution import also_saving, saved, split, with_fields
from ..regularizers import AbstractRegularizer
from .augmented_state import AugmentedField, AugmentedState, zero_penalty
from .base import AbstractQuadrature, Penalized


def augment(
    quadrature: AbstractQuadrature,
    problem: Problem,
    regularizer: AbstractRegularizer,
    key: PRNGKeyArray | None,
) -> AugmentedField:
    """The vector field of the state and the integral."""
    if problem.solver_state is not None:
        raise ValueError(
            f"`solver_state` must be `None` with `quadrature={type(quadrature).__name__}()`, which "
            "solves a larger system than the one of that state. Use `quadrature=tn.Sampled()`."
        )
    states = regularizer.init(problem.y0, problem.args, key=key)
    return AugmentedField(problem.slope_term, regularizer, states)


def takes_any_state(solver: dfx.AbstractSolver) -> bool:
    """Whether a solver allows states of any structure, like those of diffrax and taynode.

    The `step` of a user's solver may do arithmetic on the state, such as `y0 + dt * f`, which only
    works for arrays.
    """
    inner = getattr(solver, "solver", None)
    if isinstance(inner, dfx.AbstractSolver) and not takes_any_state(inner):
        return False
    return type(solver).step.__module__.partition(".")[0] in ("diffrax", "taynode")


def solve_augmented(
    problem: Problem, field: AugmentedField, vector_field: VectorField
) -> Penalized:
    """Solve for the state and the integral with `vector_field`, and separate them again.

    Its results have the shapes of those of `field`.
    """
    zero = zero_penalty(field, problem.t0, problem.y0, problem.args)
    larger = problem.replace(
        terms=dfx.ODETerm(vector_field),
        y0=AugmentedState(problem.y0, zero),
        event=_plain_event(problem.event),
        saveat=_plain_saveat(problem),
    )
    solution, integral = (_whole if problem.is_backsolve else _apart)(larger)
    integral = jtu.tree_map(lambda x: x * problem.direction.astype(x.dtype), integral)
    solution = with_fields(
        solution,
        interpolation=plain(solution.interpolation),
        solver_state=plain(solution.solver_state),
    )
    # Each evaluation by the solver is one of the rate; those that choose the first step are not.
    evaluations = solution.stats["nfe"] - solution.stats["num_probes"]
    return Penalized(solution, integral, evaluations)


class _PlainSave(eqx.Module):
    """A user's `fn` of `diffrax.SubSaveAt`, applied to the plain state."""

    fn: Callable[..., PyTree]

    def __call__(self, t: RealScalarLike, state: AugmentedState, args: Args) -> PyTree:
        return self.fn(t, state.y, args)


class _PlainCondition(eqx.Module):
    """The condition of an event, applied to the plain system."""

    fn: Callable[..., BoolScalarLike | RealScalarLike]

    def __call__(
        self, t: RealScalarLike, y: AugmentedState, args: Args, *, terms: PyTree, **others: Any
    ) -> BoolScalarLike | RealScalarLike:
        return self.fn(t, y.y, args, terms=plain(terms), **others)


def _plain_event(event: dfx.Event | None) -> dfx.Event | None:
    if event is None:
        return None
    conditions = jtu.tree_map(_PlainCondition, event.cond_fn, is_leaf=callable)
    return dfx.Event(conditions, event.root_finder, event.direction)


def _plain_saveat(problem: Problem) -> dfx.SaveAt:
    """Apply the functions of `saveat` to the plain state.

    `BacksolveAdjoint` saves whole states only: it allows no other function than the default.
    """
    default = dfx.SubSaveAt(t1=True).fn

    def plain_save(sub):
        if problem.is_backsolve and sub.fn is default:
            return sub
        return eqx.tree_at(lambda s: s.fn, sub, _PlainSave(sub.fn))

    subs = jtu.tree_map(plain_save, problem.saveat.subs, is_leaf=is_subsaveat)
    return eqx.tree_at(lambda s: s.subs, problem.saveat, subs, is_leaf=lambda x: x is None)


def _save_penalty(t: RealScalarLike, state: AugmentedState, args: Args) -> Rate:
    del t, args
    return state.penalty


def _apart(problem: Problem) -> tuple[dfx.Solution, Rate]:
    """Save the integral at the end in addition to the output of the user."""
    saveat = also_saving(problem.saveat, dfx.SubSaveAt(t1=True, fn=_save_penalty))
    solution, _, integrals = split(integrate(problem.replace(saveat=saveat)))
    return solution, jtu.tree_map(lambda x: x[0], integrals)


def _whole(problem: Problem) -> tuple[dfx.Solution, Rate]:
    """Save whole states, as `BacksolveAdjoint` needs it, and separate the integral afterwards."""
    sub = problem.saveat.subs
    add_end = isinstance(sub, dfx.SubSaveAt) and not sub.t1
    if add_end:
        saveat = eqx.tree_at(lambda s: s.subs.t1, problem.saveat, True)
        problem = problem.replace(saveat=saveat)
    solution = integrate(problem)
    ts, states = saved(solution)
    # The end is the last finite entry: after an early end, infinities follow.
    end = jnp.sum(jnp.isfinite(ts)) - 1
    penalty = jtu.tree_map(lambda x: x[end], states.penalty)
    if not add_end:
        return with_fields(solution, ys=states.y), penalty

    def without_end(x):
        kept = (jnp.arange(len(x) - 1) < end).reshape(-1, *(1,) * (x.ndim - 1))
        return jnp.where(kept, x[:-1], jnp.inf)

    ts = without_end(ts * problem.direction) * problem.direction
    return with_fields(solution, ts=ts, ys=jtu.tree_map(without_end, states.y)), penalty
