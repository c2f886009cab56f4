"""States at given times, as extra output of a solve that is otherwise unchanged."""

from typing import NamedTuple

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Bool, Real

from .._types import Arrays
from ..integration.integrate import integrate
from ..integration.problem import Problem
from ..integration.solution import also_saving, split, with_fields
from .observer import integrate_observed
from .row_reader import combines_stages, RowReader


# To read a state in each step takes less time than to save it, if there are few readings.
MOST_READ = 2


class Readings(NamedTuple):
    """States at given times.

    If a solve ended before a time, the reading is the initial time and state, and `reached` is
    `False`.
    """

    times: Real[Array, "..."]
    states: Arrays
    reached: Bool[Array, "..."]


def read_batch(problem: Problem, times: Real[Array, " points"]) -> tuple[dfx.Solution, Readings]:
    """Read the whole state at each of the times, which may have any order."""
    if len(times) <= MOST_READ and _observes(problem) and combines_stages(problem.solver):
        solution, (_, states, reached) = _read_steps(problem, times[:, None], None)
        reached = jnp.squeeze(reached, 1)
        return solution, Readings(jnp.where(reached, times, problem.t0), states, reached)
    order = jnp.argsort(times * problem.direction)
    place = jnp.argsort(order)
    save = _merged if problem.is_backsolve else _separate
    solution, saved_times, states = save(problem, times[order])
    # After an early end, the saved values at times that were not reached are undefined.
    reached = (saved_times == times[order])[place]

    def reached_or_start(x, y):
        return jnp.where(reached.reshape(-1, *(1,) * y.ndim), x[place], y)

    states = jtu.tree_map(reached_or_start, states, problem.y0)
    return solution, Readings(jnp.where(reached, times, problem.t0), states, reached)


def read_rows(
    problem: Problem, times: Real[Array, "points rows"], axis: int
) -> tuple[dfx.Solution, Readings]:
    """Read each row of a batch at its own times."""
    if _observes(problem):
        return _read_steps(problem, times, axis)
    # Otherwise, read the whole batch at all times, and take the row of each reading.
    solution, (read_times, states, reached) = read_batch(problem, times.reshape(-1))
    num_points, num_rows = times.shape

    def take(x, y):
        x = x.reshape(num_points, num_rows, *y.shape)
        return jnp.diagonal(jnp.moveaxis(x, 2 + axis % y.ndim, 2), axis1=1, axis2=2)

    # The diagonal is the last axis. Move it to the axis of rows.
    states = jtu.tree_map(
        lambda x, y: jnp.moveaxis(take(x, y), -1, 1 + axis % y.ndim), states, problem.y0
    )
    return solution, Readings(read_times.reshape(times.shape), states, reached.reshape(times.shape))


def _observes(problem: Problem) -> bool:
    """Whether a solver can be wrapped in one that reads the state in each step."""
    implicit = isinstance(problem.solver, dfx.AbstractImplicitSolver)
    return not (problem.is_backsolve or implicit or problem.event is not None)


def _read_steps(
    problem: Problem, times: Real[Array, "points rows"], axis: int | None
) -> tuple[dfx.Solution, Readings]:
    wrap = lambda s: RowReader(s, times * problem.direction, axis, combines_stages(s))
    solution, (states, reached) = integrate_observed(problem, wrap)
    return solution, Readings(jnp.where(reached, times, problem.t0), states, reached)


def _separate(problem: Problem, times: Array) -> tuple[dfx.Solution, Array, Arrays]:
    """Save at the times in addition to the output of the user."""
    saveat = also_saving(problem.saveat, dfx.SubSaveAt(ts=times))
    return split(integrate(problem.replace(saveat=saveat)))


def _merged(problem: Problem, times: Array) -> tuple[dfx.Solution, Array, Arrays]:
    """Merge the times with those of the user, since `BacksolveAdjoint` allows one series only."""
    sub = problem.saveat.subs
    if not isinstance(sub, dfx.SubSaveAt):
        # diffrax raises the error for this adjoint.
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
