"""An unbiased estimate of the integral, from the rate at random times."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import Array, Bool, PRNGKeyArray, Real

from .._types import RealScalar, RealScalarLike
from ..integration.problem import Problem
from ..integration.solution import also_saving, split, time_and_state
from ..regularizers import AbstractRegularizer
from .base import AbstractQuadrature, Penalized
from .readings import read_batch, read_rows
from .rows import check_rows, row_rates


class Sampled(AbstractQuadrature):
    """Evaluates the rate at random times only: a cheap and unbiased estimate.

    The times are stratified, one in each of `points` equal parts of the interval. The states there
    are extra outputs of the same solve. Gradients flow through the states and through the rate, so
    the gradient is unbiased, too. Needs `key=`; pass another one at each training step, and one for
    each sample under `jax.vmap`.

    Where the vector field is not smooth, as at the knots of an interpolated control, there is no
    rate. A random time is such a point with probability zero.

    The states are those of the solver's dense output. For a stochastic equation this is a straight
    line within each step.

    If an event or a failure ends the solve early, later times do not contribute.

    **Arguments:**

    - `points`: the number of times.
    - `batch_axis`: the axis of rows in each leaf of the state, if the state is a batch solved
        jointly. Each row then has its own times and noise, which costs little more and has less
        variance. The rows must not influence one another. Arguments that belong to single rows,
        such as the conditions of a conditional flow, must be wrapped in `tn.PerRow`; the rows share
        all other arguments.
    - `power`: the rates at all times, and of all rows, are averaged as a power mean of this power,
        at least 1. Above 1, the largest rates count more: those of the rows that a batch waits for,
        and of the times at which steps are short. Such a mean is no unbiased estimate. It is too
        small on average, and less so with more `points` and rows. Rates must not be negative.
    """

    points: int = eqx.field(static=True, default=1)
    batch_axis: int | None = eqx.field(static=True, default=None)
    power: int | float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        if not isinstance(self.points, int) or isinstance(self.points, bool) or self.points < 1:
            raise ValueError(
                f"`points` must be a Python integer of at least 1, got {self.points!r}."
            )
        axis = self.batch_axis
        if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
            raise ValueError(f"`batch_axis` must be a Python integer or `None`, got {axis!r}.")
        if not (isinstance(self.power, int | float) and 1 <= self.power < float("inf")):
            raise ValueError(f"`power` must be a finite number of at least 1, got {self.power!r}.")

    def solve(
        self, problem: Problem, regularizer: AbstractRegularizer, key: PRNGKeyArray | None
    ) -> Penalized:
        """Solve, read the state at random times, and average the rate there."""
        if key is None:
            raise ValueError(
                "`quadrature=Sampled()`, the default with a `regularizer`, draws random times, so "
                "the solve needs `key=`. Pass `key=jax.random.key(0)`, and another one at each "
                "training step; or `quadrature=tn.Augmented()`, which needs no key and costs more."
            )
        time_key, noise_key = jr.split(key)
        interval = problem.t0, problem.t1
        moving_end = problem.event is not None and problem.event.root_finder is not None
        if moving_end and self.power != 1:
            raise ValueError(
                "`quadrature=Sampled(power=...)` needs the whole path, which an `event` with a "
                "`root_finder` may end early; use `power=1`."
            )
        if moving_end:
            saveat = also_saving(problem.saveat, dfx.SubSaveAt(t1=True, fn=time_and_state))
            problem = problem.replace(saveat=saveat)
            interval = jax.lax.stop_gradient(interval)
        term = problem.slope_term
        if self.batch_axis is None:
            times = self._times(*interval, (self.points,), time_key)
            solution, readings = read_batch(problem, times)
            noise = regularizer.init(problem.y0, problem.args, key=noise_key)
            rates_at = lambda t, y: regularizer.rate(term.vf, t, y, problem.args, noise)[1]
        else:
            num_rows = check_rows(problem, self.batch_axis)
            times = self._times(*interval, (self.points, num_rows), time_key)
            solution, readings = read_rows(problem, times, self.batch_axis)
            rates_at = row_rates(problem, regularizer, self.batch_axis, num_rows, noise_key)
        rates = jax.vmap(rates_at)(readings.times, readings.states)
        length = jnp.abs(interval[1] - interval[0])
        mean = lambda rate: _mean(rate, readings.reached, length, self.power)
        integrals = jtu.tree_map(mean, rates)
        if moving_end:
            solution, _, end = split(solution)
            t_end, y_end = jtu.tree_map(lambda x: x[0], end)
            # If an end moves, the integral grows by the mean rate of the rows there. These terms
            # have a gradient but a value of zero, since the interval is counted already.
            rows = times.shape[1:]
            for sign, t, y in ((1, t_end, y_end), (-1, problem.t0, problem.y0)):
                moved = sign * problem.direction * (t - jax.lax.stop_gradient(t))
                integrals = jtu.tree_map(
                    lambda x, rate, m=moved: (
                        x + jnp.mean(rate, axis=range(len(rows))) * m.astype(x.dtype)
                    ),
                    integrals,
                    rates_at(jnp.broadcast_to(t, rows), y),
                )
        return Penalized(solution, integrals, self.points + 2 * int(moving_end))

    def _times(
        self, t0: RealScalarLike, t1: RealScalarLike, shape: tuple[int, ...], key: PRNGKeyArray
    ) -> Real[Array, "points ..."]:
        """Draw a time, or one for each row, in each part of the interval."""
        t1 = eqx.error_if(
            t1,
            jnp.invert(jnp.isfinite(t1)),
            "`quadrature=Sampled()` draws times between `t0` and `t1`, so `t1` must be finite.",
        )
        dtype = jnp.result_type(t0)
        strata = jnp.arange(self.points, dtype=dtype).reshape(-1, *(1,) * (len(shape) - 1))
        fractions = (strata + jr.uniform(key, shape, dtype)) / self.points
        # Rounding must not move a time past the end.
        return jnp.clip(t0 + (t1 - t0) * fractions, jnp.minimum(t0, t1), jnp.maximum(t0, t1))


def _mean(
    rate: Array, reached: Bool[Array, "..."], length: RealScalar, power: int | float
) -> Array:
    """The mean of the rates over times and rows, multiplied with the length of the interval."""
    counts = reached.reshape(reached.shape + (1,) * (rate.ndim - reached.ndim))
    axes = tuple(range(reached.ndim))
    rate = jnp.where(counts, rate, 0)
    if power == 1:
        return jnp.sum(rate, axis=axes) * (length / reached.size).astype(rate.dtype)
    rate = eqx.error_if(
        rate, rate < 0, "`quadrature=Sampled(power=...)` needs rates that are not negative."
    )
    # Powers of shares of the largest rate neither overflow nor vanish.
    largest = jax.lax.stop_gradient(jnp.max(rate, axis=axes))
    unit = jnp.where(largest > 0, largest, 1)
    mean = jnp.mean((rate / unit) ** power, axis=axes)
    # The root has no gradient at zero.
    is_zero = mean == 0
    root = jnp.where(is_zero, 0, jnp.where(is_zero, 1, mean) ** (1 / power))
    return root * unit * length.astype(rate.dtype)
