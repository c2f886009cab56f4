"""Generated time series: a noisy rotation, whose distribution is known."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32


# dy = A y dt + NOISE dW, where A turns by TURN and shrinks by RATE per unit of time.
RATE, TURN, NOISE = 1.0, 2 * np.pi, 0.5

Paths = Float32[np.ndarray, "num times 2"]


class Law(NamedTuple):
    """The normal distribution of the state at several times, given the first one.

    - `mean`: the means.
    - `variance`: the variance of each coordinate. Coordinates are independent of each other.
    """

    mean: Float[np.ndarray, "num times 2"]
    variance: Float[np.ndarray, " times"]


def rotations(num: int, *, seed: int, num_times: int = 17) -> Paths:
    """Paths of an Ornstein-Uhlenbeck process in the plane that turns once, from 0 to 1.

    They begin at random points of the unit circle, and have the exact distribution.

    **Arguments:**

    - `num`: the number of paths.
    - `seed`: the seed of all random numbers.
    - `num_times`: the number of equal times, with both ends.
    """
    random = np.random.default_rng(seed)
    angle = random.uniform(0.0, 2 * np.pi, num)
    paths = [np.stack([np.cos(angle), np.sin(angle)], axis=-1)]
    step = law(paths[0], np.array([1 / (num_times - 1)]))
    scale = np.sqrt(step.variance[0])
    for _ in range(num_times - 1):
        mean = law(paths[-1], np.array([1 / (num_times - 1)])).mean[:, 0]
        paths.append(mean + scale * random.standard_normal(mean.shape))
    return np.stack(paths, axis=1).astype(np.float32)


def law(start: Float[np.ndarray, "num 2"], times: Float[np.ndarray, " times"]) -> Law:
    """The distribution of the state at some times after it is at `start`."""
    turn, decay = TURN * times, np.exp(-RATE * times)
    columns = np.stack([np.cos(turn), np.sin(turn), -np.sin(turn), np.cos(turn)], axis=-1)
    matrix = decay[:, None, None] * columns.reshape(-1, 2, 2).swapaxes(1, 2)
    mean = np.einsum("tij,nj->nti", matrix, start)
    return Law(mean, NOISE**2 * (1 - decay**2) / (2 * RATE))
