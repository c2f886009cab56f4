"""The integral as one more component of the state."""

import abc
from typing import Any

import diffrax as dfx
import equinox as eqx
import equinox.internal as eqxi
import jax.numpy as jnp
import jax.tree_util as jtu

from .._types import Key
from ..augment import (
    AugmentedField,
    AugmentedState,
    CostateField,
    finalize,
    initial_states,
    plain,
    zero_penalty,
)
from ..integrate import integrate, is_subsaveat, Problem, saved, with_fields
from .base import AbstractQuadrature, Outcome


class AbstractAugmented(AbstractQuadrature):
    """Solves for the state and the penalty in one call."""

    @abc.abstractmethod
    def moving(self, field: AugmentedField, problem: Problem) -> Any:
        """The vector field of the augmented state."""

    def solve(self, problem: Problem, regularizer: Any, key: Key | None) -> Outcome:
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
        return Outcome(solution, penalty, evaluations)


class Augmented(AbstractAugmented):
    """The quadrature of the paper: the integral rides in the solver's state.

    The penalty is as exact as the solution. The rate is evaluated at each stage of the solver, so a
    solve costs several times that of the plain system; `Sampled` is far cheaper for training. The
    penalty takes no part in step-size control, forwards or backwards.
    """

    def moving(self, field: AugmentedField, problem: Problem) -> Any:
        """Both move."""
        del problem
        return field


class Backward(AbstractAugmented):
    """The released code's trick: the gradient of the penalty without its value.

    Forwards the plain system is solved; the rate enters where derivatives are taken. The penalty
    reads 0, with `stats["penalty_known"]` False, and has the gradient of `Augmented`, if the loss
    is linear in the penalty. For `diffrax.BacksolveAdjoint`, where the paper used it, and equally
    for the other adjoints that differentiate in reverse.
    """

    def moving(self, field: AugmentedField, problem: Problem) -> Any:
        """The penalty moves in the derivatives alone."""
        if isinstance(problem.adjoint, dfx.ForwardMode):
            raise ValueError(
                "`quadrature=Backward()` exists in reverse-mode differentiation only, so it cannot "
                "be used with `adjoint=ForwardMode()`; use `Augmented()` or `Sampled()`."
            )
        if isinstance(problem.solver, dfx.AbstractImplicitSolver):
            raise ValueError(
                "`quadrature=Backward()` exists in reverse-mode differentiation only, and the "
                f"implicit `solver` `{type(problem.solver).__name__}` differentiates in forward "
                "mode; use `Augmented()` or `Sampled()`."
            )
        if problem.event is not None and problem.event.root_finder is not None:
            raise ValueError(
                "`quadrature=Backward()` does not know the penalty's value, so it cannot "
                "differentiate for the time of an `event` with a `root_finder`; use `Augmented()` "
                "or `Sampled()`."
            )
        if isinstance(field.plain_part, eqx.Module):
            return CostateField(field)
        # A function may close over the parameters that one differentiates for.
        vector_field = eqx.filter_closure_convert(
            field.plain_part, problem.t0, problem.y0, problem.args
        )
        return CostateField(eqx.tree_at(lambda f: f.term.vector_field, field, vector_field))

    def solve(self, problem: Problem, regularizer: Any, key: Key | None) -> Outcome:
        """Solve, and report that the value of the penalty is not known."""
        why = "With `quadrature=Backward()`, whose penalty has no value,"
        t0, t1 = (
            eqxi.nondifferentiable(t, name=f"{why} `{name}`")
            for name, t in (("t0", problem.t0), ("t1", problem.t1))
        )
        problem = problem.replace(t0=t0, t1=t1)
        solution, penalty, _, _ = super().solve(problem, regularizer, key)
        return Outcome(solution, penalty, 0, known=False)


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
