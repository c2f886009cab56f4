"""Solving for the state and the penalty in one call."""

import abc
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu

from .._types import Key
from ..integration.integrate import integrate
from ..integration.plain import plain
from ..integration.problem import is_subsaveat, Problem
from ..integration.solution import saved, with_fields
from ..regularizers.combine import finalize, initial_states
from .augmented_state import AugmentedField, AugmentedState, zero_penalty
from .base import AbstractQuadrature, Penalized


class AbstractAugmented(AbstractQuadrature):
    """Solves for the state and the penalty in one call."""

    @abc.abstractmethod
    def moving(self, field: AugmentedField, problem: Problem) -> Any:
        """The vector field of the augmented state."""

    def solve(self, problem: Problem, regularizer: Any, key: Key | None) -> Penalized:
        """Augment, solve, and take the state and the penalty apart again."""
        if problem.solver_state is not None:
            raise ValueError(
                f"`solver_state` is that of the plain system, and `{type(self).__name__}()` solves "
                "a larger one. Use `quadrature=tn.Sampled()` to go on from a solver's state."
            )
        states = initial_states(regularizer, problem.y0, problem.args, key)
        field = AugmentedField(problem.terms, regularizer, states)
        zero = zero_penalty(field, problem.t0, problem.y0, problem.args)
        larger = problem.replace(
            terms=dfx.ODETerm(self.moving(field, problem)),
            y0=AugmentedState(problem.y0, zero),
            event=_plain_event(problem.event),
        )
        solution, integrals = (_whole if problem.is_backsolve else _apart)(larger)
        integrals = jtu.tree_map(lambda x: x * problem.direction.astype(x.dtype), integrals)
        solution = with_fields(
            solution,
            interpolation=plain(solution.interpolation),
            solver_state=plain(solution.solver_state),
        )
        penalty = finalize(regularizer, integrals, problem.t0, problem.t1)
        # Every evaluation of the solver is one of the rate; those that choose a step are not.
        evaluations = solution.stats["nfe"] - solution.stats["num_probes"]
        return Penalized(solution, penalty, evaluations)


class _PlainSave(eqx.Module):
    """What the user saves, of the state alone."""

    fn: Any

    def __call__(self, t: Any, state: AugmentedState, args: Any) -> Any:
        return self.fn(t, state.y, args)


class _PlainCondition(eqx.Module):
    """An event's condition, which sees the plain system alone."""

    fn: Any

    def __call__(self, t: Any, y: AugmentedState, args: Any, *, terms: Any, **others: Any) -> Any:
        return self.fn(t, y.y, args, terms=plain(terms), **others)


def _plain_event(event: dfx.Event | None) -> dfx.Event | None:
    if event is None:
        return None
    conditions = jtu.tree_map(_PlainCondition, event.cond_fn, is_leaf=callable)
    return dfx.Event(conditions, event.root_finder, event.direction)


def _save_penalty(t: Any, state: AugmentedState, args: Any) -> Any:
    del t, args
    return state.penalty


def _apart(problem: Problem) -> tuple[dfx.Solution, Any]:
    """Save the state as the user wants it, and the penalty at the end."""
    saveat = problem.saveat
    own = jtu.tree_map(
        lambda sub: eqx.tree_at(lambda s: s.fn, sub, _PlainSave(sub.fn)),
        saveat.subs,
        is_leaf=is_subsaveat,
    )
    subs = own, dfx.SubSaveAt(t1=True, fn=_save_penalty)
    saveat = eqx.tree_at(lambda s: s.subs, saveat, subs, is_leaf=lambda x: x is None)
    solution = integrate(problem.replace(saveat=saveat))
    (ts, _), (ys, penalties) = saved(solution)
    return with_fields(solution, ts=ts, ys=ys), jtu.tree_map(lambda x: x[0], penalties)


def _whole(problem: Problem) -> tuple[dfx.Solution, Any]:
    """`BacksolveAdjoint` saves nothing but whole states, all at the same times."""
    sub = problem.saveat.subs
    add_end = isinstance(sub, dfx.SubSaveAt) and not sub.t1
    if add_end:
        saveat = eqx.tree_at(lambda s: s.subs.t1, problem.saveat, True)
        problem = problem.replace(saveat=saveat)
    solution = integrate(problem)
    ts, states = saved(solution)
    # The end comes last, or where an early end left the first gap.
    end = jnp.sum(jnp.isfinite(ts)) - 1
    penalty = jtu.tree_map(lambda x: x[end], states.penalty)
    if not add_end:
        return with_fields(solution, ys=states.y), penalty

    def without_end(x):
        kept = (jnp.arange(len(x) - 1) < end).reshape(-1, *(1,) * (x.ndim - 1))
        return jnp.where(kept, x[:-1], jnp.inf)

    ts = without_end(ts * problem.direction) * problem.direction
    return with_fields(solution, ts=ts, ys=jtu.tree_map(without_end, states.y)), penalty
