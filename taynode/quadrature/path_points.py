"""Several points of a path at once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PRNGKeyArray

from ..integration.problem import Problem
from ..regularizers.combine import Combined
from .base import AbstractQuadrature, Penalized
from .readings import read_batch


class PathPoints(AbstractQuadrature):
    """Reads the path at its ends and at random times between them, for penalties on whole paths.

    It needs regularizers such as `tn.PolynomialDistance()`, and `key=`. The states are extra
    outputs of the same solve, so it costs no evaluation. All rows of a batch are read at the same
    times.

    **Arguments:**

    - `points`: the number of times between the ends.
    """

    points: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if not isinstance(self.points, int) or isinstance(self.points, bool) or self.points < 1:
            raise ValueError(
                f"`points` must be a Python integer of at least 1, got {self.points!r}."
            )

    def solve(self, problem: Problem, regularizer: Combined, key: PRNGKeyArray | None) -> Penalized:
        """Solve, read the path, and compute the penalties."""
        if key is None:
            raise ValueError(
                "`quadrature=PathPoints()` draws random times, so the solve needs `key=`. Pass "
                "`key=jax.random.key(0)`, and another one at each training step."
            )
        if problem.event is not None:
            raise ValueError(
                "`quadrature=PathPoints()` needs the whole path, which an `event` may end early; "
                "use another regularizer with `tn.Sampled()`."
            )
        t0, t1 = jax.lax.stop_gradient((jnp.asarray(problem.t0), jnp.asarray(problem.t1)))
        shares = jnp.sort(jr.uniform(key, (self.points,), jnp.result_type(t0)))
        ends = jnp.zeros(1, shares.dtype), jnp.ones(1, shares.dtype)
        times = t0 + (t1 - t0) * jnp.concatenate([ends[0], shares, ends[1]])
        solution, readings = read_batch(problem, jnp.concatenate([times[:-1], t1[None]]))
        return Penalized(solution, regularizer.of_path(readings.times, readings.states), 0)
