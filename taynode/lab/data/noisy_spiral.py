"""Generated trajectories: a spiral with multiplicative noise, and its moments over time."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


# du = A^T u^3 dt + NOISE u dW, an Ito equation with independent noise of both coordinates. It is
# that of Pal, Ma, Shah and Rackauckas (ICML 2021), and of the documentation of DiffEqFlux.
MATRIX = np.array([[-0.1, 2.0], [-2.0, -0.1]])
NOISE, START = 0.2, (2.0, 0.0)
NUM_TIMES = 30
# Steps between two times. With twice as many, moments of 100,000 trajectories are the same up to
# their standard errors.
NUM_STEPS = 8

Points = Float[np.ndarray, "num 2"]
Paths = Float[np.ndarray, "num times 2"]


class Moments(NamedTuple):
    """The moments of paths at some times, with as many rows as samples.

    - `mean`: the means.
    - `variance`: the variance of each coordinate.
    """

    mean: Float[np.ndarray, "num times 2"]
    variance: Float[np.ndarray, "num times 2"]


def noisy_spirals(num: int, *, seed: int, num_times: int = NUM_TIMES) -> Paths:
    """Trajectories from time 0 to 1 that begin at `START`.

    Each step has the exact flow of the noise, of half of its length, before and after a step of
    RK4 with the drift. This is of second order in the law.

    **Arguments:**

    - `num`: the number of trajectories.
    - `seed`: the seed of all random numbers.
    - `num_times`: the number of equal times, with both ends.
    """
    random = np.random.default_rng(seed)
    step = 1 / ((num_times - 1) * NUM_STEPS)
    points = np.broadcast_to(np.array(START), (num, 2))
    paths = [points]
    for _ in range(num_times - 1):
        for _ in range(NUM_STEPS):
            points = _noisy(points, step / 2, random)
            points = _drifted(points, step)
            points = _noisy(points, step / 2, random)
        paths.append(points)
    return np.stack(paths, axis=1)


def moments(paths: Paths) -> Moments:
    """The moments of trajectories, as one row."""
    return Moments(paths.mean(axis=0)[None], paths.var(axis=0, ddof=1)[None])


def drift(points: Points) -> Points:
    """The drift of the Ito equation."""
    # Powers are slow in NumPy.
    return (points * points * points) @ MATRIX


def _noisy(points: Points, time: float, random: np.random.Generator) -> Points:
    """The points after some time of du = NOISE u dW alone."""
    normal = random.standard_normal(points.shape)
    return points * np.exp(NOISE * np.sqrt(time) * normal - 0.5 * NOISE**2 * time)


def _drifted(points: Points, time: float) -> Points:
    """The points after some time of the drift alone."""
    first = drift(points)
    second = drift(points + 0.5 * time * first)
    third = drift(points + 0.5 * time * second)
    last = drift(points + time * third)
    return points + time / 6 * (first + 2 * second + 2 * third + last)
