"""How good samples of a flow are, by the number of steps that draw them."""

import dataclasses
from pathlib import Path
from typing import Any, Protocol, runtime_checkable, TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..files import Json


if TYPE_CHECKING:
    from ...models import ContinuousFlow
    from ..training.loading import LoadedRun

SAMPLING, ENDS = "sampling", "ends of paths"
# Of data that is generated. With 2,000 points the noise of the energy distance was larger than that
# distance.
NUM_FRESH = 5000
NUM_SAMPLES = 2000
# The seeds of fresh points begin here, after those of the data.
FRESH_SEEDS = 1000
STEPS = (2, 4, 8, 16)
SOLVERS = ("euler", "midpoint")
NUM_DIRECTIONS = 128
ROWS_AT_ONCE = 500

Points = Float[np.ndarray, "num dim"]
Others = Float[np.ndarray, "others dim"]


@runtime_checkable
class HasFreshPoints(Protocol):
    """A task whose data is generated, so that any number of new points can be drawn."""

    def fresh(self, num: int, *, seed: int) -> np.ndarray:
        """New points."""
        ...


def _total_distance(x: Points, y: Others) -> float:
    """The sum of the distances of all pairs, a part of the rows at a time."""
    squares = np.sum(y**2, axis=1)
    total = 0.0
    for start in range(0, len(x), ROWS_AT_ONCE):
        part = x[start : start + ROWS_AT_ONCE]
        between = np.sum(part**2, axis=1)[:, None] + squares - 2 * part @ y.T
        total += float(np.sqrt(np.maximum(between, 0.0)).sum())
    return total


class Truth:
    """Points of the true distribution, with which samples are compared."""

    def __init__(self, points: Points):
        self.points = points
        self._within = _total_distance(points, points) / (len(points) * (len(points) - 1))

    @classmethod
    def of(cls, run: "LoadedRun") -> "Truth":
        """Fresh points for each seed of a run if data is generated, or else test data."""
        if isinstance(run.task, HasFreshPoints):
            points = run.task.fresh(NUM_FRESH, seed=FRESH_SEEDS + run.config.seed)
        else:
            points = run.data.test[:NUM_SAMPLES]
        return cls(np.asarray(points, np.float64).reshape(len(points), -1))

    def energy_distance(self, x: Others) -> float:
        """2 E|x - y| - E|x - x'| - E|y - y'|: zero if and only if both distributions are the same.

        Without bias: pairs of a point with itself are left out. So it may be negative.
        """
        between = _total_distance(x, self.points) / (len(x) * len(self.points))
        within = _total_distance(x, x) / (len(x) * (len(x) - 1))
        return 2 * between - within - self._within


def sliced_wasserstein(x: Points, y: Points, *, seed: int = 0) -> float:
    """The mean distance of sorted projections on random directions, for as many points of each."""
    directions = np.random.default_rng(seed).normal(size=(x.shape[1], NUM_DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    a, b = (np.sort(points @ directions, axis=0) for points in (x, y))
    return float(np.mean(np.abs(a - b)))


def sampling_of(directory: Path) -> Json:
    """Measurements of a run: distances of samples from the truth, and evaluations.

    There are as many samples as true points: `adaptive` with the solver and
    tolerance of evaluations, solved jointly, and `euler` and `midpoint` by the number of steps.
    """
    from ..training.loading import load

    run = load(directory)
    return quality_of(run, run.model)


def quality_of(run: "LoadedRun", model: "ContinuousFlow") -> Json:
    """The same for another model of a run's task."""
    from ..training.build import make_solve
    from ..training.keys import Keys

    truth = Truth.of(run)
    num = len(truth.points)

    def measured(samples: Any) -> Json:
        points = np.asarray(samples, np.float64).reshape(num, -1)
        return {
            "energy": truth.energy_distance(points),
            "wasserstein": sliced_wasserstein(points, truth.points),
        }

    config = run.config.evaluation
    # All samples begin at the same noise.
    draw = lambda solve: model.sample(Keys(run.config.seed).quality, num, solve)
    samples, solution = draw(make_solve(config))
    found = {"adaptive": {**measured(samples), "joint_nfe": int(solution.stats["nfe"])}}
    for name in SOLVERS:
        for steps in STEPS:
            samples, _ = draw(make_solve(dataclasses.replace(config, solver=name, steps=steps)))
            found[f"{name} {steps}"] = measured(samples)
    return found


def end_quality_of(directory: Path) -> Json:
    """The energy distance of states of an SDE at time 1 from the truth, drawn as in evaluations."""
    import equinox as eqx
    import jax.numpy as jnp
    import jax.random as jr

    from ..training.build import make_solve
    from ..training.keys import Keys
    from ..training.loading import load

    run = load(directory)
    truth = Truth.of(run)
    solve = make_solve(run.config.evaluation)
    start_key, path_key = jr.split(Keys(run.config.seed).quality)
    start = jr.normal(start_key, truth.points.shape, run.data.test.dtype)
    end = jnp.ones(1, start.dtype)
    draws, solution = eqx.filter_jit(run.model)(start, end, solve, path_key=path_key)
    points = np.asarray(draws[:, -1], np.float64)
    return {"energy": truth.energy_distance(points), "joint_nfe": int(solution.stats["nfe"])}
