"""Reading the state at given times, as extra output of a solve that is otherwise unchanged."""

from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu

from .._types import Arrays
from ..integration.integrate import integrate
from ..integration.problem import Problem
from ..integration.solution import also_saving, split, with_fields
from .observer import integrate_observed
from .row_reader import RowReader


class Readings(NamedTuple):
    """States at given times.

    Where a solve ended early, these are the initial time and state, marked as not reached.
    """

    times: Any
    states: Arrays
    reached: Any


def read_batch(problem: Problem, times: Any) -> tuple[dfx.Solution, Readings]:
    """The whole state at each of the times, a vector in any order."""
    order = jnp.argsort(times * problem.direction)
    place = jnp.argsort(order)
    save = _merged if problem.is_backsolve else _separate
    solution, saved_times, states = save(problem, times[order])
    # Where a solve ends early, other things may be saved in the place of what was not reached.
    reached = (saved_times == times[order])[place]
    states = jtu.tree_map(lambda x: x[place], states)
    start = jtu.tree_map(lambda y: y[None], problem.y0)
    times = jnp.where(reached, times, problem.t0)
    return solution, Readings(times, _where(reached, states, start), reached)


def read_rows(problem: Problem, times: Any, axis: int) -> tuple[dfx.Solution, Readings]:
    """Each row of a batch at its own times, an array of points and rows."""
    implicit = isinstance(problem.solver, dfx.AbstractImplicitSolver)
    if not (problem.is_backsolve or implicit or problem.event is not None):
        return _read_rows_while_stepping(problem, times, axis)
    # In general: read the whole batch at all times, and take from each reading its row.
    solution, (read_times, states, reached) = read_batch(problem, times.reshape(-1))
    num_points, num_rows = times.shape

    def take(x, y):
        x = x.reshape(num_points, num_rows, *y.shape)
        return jnp.diagonal(jnp.moveaxis(x, 2 + axis % y.ndim, 2), axis1=1, axis2=2)

    # The diagonal is the last axis; it belongs where the rows were.
    states = jtu.tree_map(
        lambda x, y: jnp.moveaxis(take(x, y), -1, 1 + axis % y.ndim), states, problem.y0
    )
    return solution, Readings(read_times.reshape(times.shape), states, reached.reshape(times.shape))


def _separate(problem: Problem, times: Any) -> tuple[dfx.Solution, Any, Arrays]:
    """Save at the times, apart from what the user saves."""
    saveat = also_saving(problem.saveat, dfx.SubSaveAt(ts=times))
    return split(integrate(problem.replace(saveat=saveat)))


def _merged(problem: Problem, times: Any) -> tuple[dfx.Solution, Any, Arrays]:
    """`BacksolveAdjoint` has one series of output times: merge both into it, and split it again."""
    sub = problem.saveat.subs
    if not isinstance(sub, dfx.SubSaveAt):
        # Not allowed with this adjoint, which says so itself.
        return integrate(problem), times, problem.y0
    own = times[:0] if sub.ts is None else sub.ts.astype(times.dtype)
    merged = jnp.concatenate([own, times])
    order = jnp.argsort(merged * problem.direction)
    place = jnp.argsort(order)
    saveat = eqx.tree_at(
        lambda s: s.subs.ts, problem.saveat, merged[order], is_leaf=lambda x: x is None
    )
    solution = integrate(problem.replace(saveat=saveat))
    first = int(sub.t0)
    kept = jnp.concatenate(
        [
            jnp.arange(first),
            first + place[: len(own)],
            jnp.arange(first + len(merged), first + len(merged) + int(sub.t1)),
        ]
    )
    sampled = first + place[len(own) :]
    pick = lambda index: jtu.tree_map(lambda x: x[index], (solution.ts, solution.ys))
    (ts, ys), (saved_times, states) = pick(kept), pick(sampled)
    return with_fields(solution, ts=ts, ys=ys), saved_times, states


def _read_rows_while_stepping(
    problem: Problem, times: Any, axis: int
) -> tuple[dfx.Solution, Readings]:
    wrap = lambda solver: RowReader(solver, times * problem.direction, axis)
    solution, (states, reached) = integrate_observed(problem, wrap)
    return solution, Readings(jnp.where(reached, times, problem.t0), states, reached)


def _where(reached: Any, states: Arrays, start: Arrays) -> Arrays:
    shaped = lambda x: reached.reshape(reached.shape + (1,) * (x.ndim - 1))
    return jtu.tree_map(lambda x, y: jnp.where(shaped(x), x, y), states, start)
