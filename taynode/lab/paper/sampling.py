"""How good samples of a flow are, by the number of steps that draw them."""

import dataclasses
from pathlib import Path
from typing import Any, TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..files import Json


if TYPE_CHECKING:
    from ...models import ContinuousFlow
    from ..training.loading import LoadedRun

SAMPLING, ENDS = "sampling", "ends of paths"
NUM_SAMPLES = 2000
STEPS = (2, 4, 8, 16)
SOLVERS = ("euler", "midpoint")
NUM_DIRECTIONS = 128

Points = Float[np.ndarray, "num dim"]
Others = Float[np.ndarray, "others dim"]


def energy_distance(x: Points, y: Others) -> float:
    """2 E|x - y| - E|x - x'| - E|y - y'|: zero if and only if both have the same distribution.

    Without bias: pairs of a point with itself are left out.
    """
    between = lambda a, b: np.sqrt(
        np.maximum(np.sum(a**2, 1)[:, None] + np.sum(b**2, 1) - 2 * a @ b.T, 0.0)
    )
    within = lambda a: between(a, a).sum() / (len(a) * (len(a) - 1))
    return float(2 * between(x, y).mean() - within(x) - within(y))


def sliced_wasserstein(x: Points, y: Points, *, seed: int = 0) -> float:
    """The mean distance of sorted projections on random directions, for as many points of each."""
    directions = np.random.default_rng(seed).normal(size=(x.shape[1], NUM_DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    a, b = (np.sort(points @ directions, axis=0) for points in (x, y))
    return float(np.mean(np.abs(a - b)))


def sampling_of(directory: Path) -> Json:
    """Measurements of a run: distances of samples from test data, and evaluations.

    There are as many samples as test data, at most `NUM_SAMPLES`: `adaptive` with the solver and
    tolerance of evaluations, solved jointly, and `euler` and `midpoint` by the number of steps.
    """
    from ..training.loading import load

    run = load(directory)
    return quality_of(run, run.model)


def quality_of(run: "LoadedRun", model: "ContinuousFlow") -> Json:
    """The same for another model of a run's task."""
    from ..training.build import make_solve
    from ..training.keys import Keys

    data = np.asarray(run.data.test[:NUM_SAMPLES], np.float64)
    flat = lambda samples: np.asarray(samples, np.float64).reshape(len(data), -1)

    def measured(samples: Any) -> Json:
        points = flat(samples)
        return {
            "energy": energy_distance(points, flat(data)),
            "wasserstein": sliced_wasserstein(points, flat(data)),
        }

    config = run.config.evaluation
    # All samples begin at the same noise.
    draw = lambda solve: model.sample(Keys(run.config.seed).quality, len(data), solve)
    samples, solution = draw(make_solve(config))
    found = {"adaptive": {**measured(samples), "joint_nfe": int(solution.stats["nfe"])}}
    for name in SOLVERS:
        for steps in STEPS:
            samples, _ = draw(make_solve(dataclasses.replace(config, solver=name, steps=steps)))
            found[f"{name} {steps}"] = measured(samples)
    return found


def end_quality_of(directory: Path) -> Json:
    """The energy distance of states of an SDE at time 1 from test data, drawn as in evaluations."""
    import equinox as eqx
    import jax.numpy as jnp
    import jax.random as jr

    from ..training.build import make_solve
    from ..training.keys import Keys
    from ..training.loading import load

    run = load(directory)
    data = np.asarray(run.data.test[:NUM_SAMPLES], np.float64)
    solve = make_solve(run.config.evaluation)
    start_key, path_key = jr.split(Keys(run.config.seed).quality)
    start = jr.normal(start_key, data.shape, run.data.test.dtype)
    end = jnp.ones(1, start.dtype)
    draws, solution = eqx.filter_jit(run.model)(start, end, solve, path_key=path_key)
    points = np.asarray(draws[:, -1], np.float64)
    return {"energy": energy_distance(points, data), "joint_nfe": int(solution.stats["nfe"])}
