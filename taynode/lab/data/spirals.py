"""Generated time series: spirals that turn one way or the other."""

import numpy as np

from .series import Series


RATE, FREQUENCY, LENGTH = 0.3, 2.0, 4 * np.pi


def spirals(num: int, *, seed: int, num_times: int = 100, noise: float = 0.0) -> Series:
    """Spirals toward the origin; the label is 1 for those that turn clockwise.

    This is the example of neural controlled differential equations in diffrax's documentation, at
    irregular times, which all series share. The channels are time, from 0 to 4 pi, and two
    coordinates. Each spiral begins at a random point of the unit circle and makes four turns.

    **Arguments:**

    - `num`: the number of series, half of them of each class.
    - `seed`: the seed of all random numbers but the times.
    - `num_times`: the number of times of a series.
    - `noise`: the standard deviation of the Gaussian noise of coordinates.
    """
    if num_times < 2:
        raise ValueError(f"`num_times` must be at least 2, got {num_times}.")
    # Series of several calls can be solved together, since their times are the same.
    steps = 0.2 + np.random.default_rng(num_times).standard_exponential(num_times - 1)
    times = np.concatenate([[0.0], np.cumsum(steps)])
    times = times / times[-1]
    random = np.random.default_rng(seed)
    labels = np.arange(num) % 2
    elapsed = LENGTH * times
    turn = FREQUENCY * elapsed * np.where(labels, -1, 1)[:, None]
    angle = random.uniform(0.0, 2 * np.pi, (num, 1)) + turn
    points = np.exp(-RATE * elapsed)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    points = points + noise * random.standard_normal(points.shape)
    channel = np.broadcast_to(elapsed, angle.shape)[..., None]
    values = np.concatenate([channel, points], axis=-1)
    return Series(
        times=times.astype(np.float32),
        values=values.astype(np.float32),
        mask=np.ones(values.shape, bool),
        labels=labels.astype(np.int32),
    )
