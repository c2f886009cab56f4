"""Generated time series: oscillators at irregular times."""

import numpy as np

from .series import Series


def oscillators(
    num: int,
    *,
    seed: int,
    num_times: int = 60,
    noise: float = 0.05,
    observed: float = 0.5,
    num_channels: int = 2,
) -> Series:
    """Oscillators with amplitudes of up to 1, half of them damped. All labels are zero.

    All series share the same irregular times from 0 to 1. Frequencies are 1 to 3 per unit of time,
    and every channel lags the one before by a quarter of a period.

    **Arguments:**

    - `num`: the number of series.
    - `seed`: the seed of all random numbers.
    - `num_times`, `num_channels`: the numbers of times and channels of a series.
    - `noise`: the standard deviation of the Gaussian noise of observations.
    - `observed`: the fraction of entries outside the gap that are observed. Each series has one
        gap of 0.1 to 0.3 units of time without observations. The first time is always observed, so
        that no series is empty.
    """
    if num_times < 2:
        raise ValueError(f"`num_times` must be at least 2, got {num_times}.")
    if not 0 <= observed <= 1:
        raise ValueError(f"`observed` must be in [0, 1], got {observed}.")
    random = np.random.default_rng(seed)
    # Irregular, but never so close that two times are equal in single precision.
    steps = 0.2 + random.standard_exponential(num_times - 1)
    times = np.concatenate([[0.0], np.cumsum(steps) / np.sum(steps)])

    def draw(low: float, high: float) -> np.ndarray:
        """One random number for every series."""
        return random.uniform(low, high, (num, 1, 1))

    damping = np.where(draw(0.0, 1.0) < 0.5, 0.0, draw(0.5, 2.0))
    angle = 2 * np.pi * draw(1.0, 3.0) * times[:, None] + draw(0.0, 2 * np.pi)
    angle = angle - np.pi / 2 * np.arange(num_channels)
    values = draw(0.5, 1.0) * np.exp(-damping * times[:, None]) * np.cos(angle)
    values = values + noise * random.standard_normal(values.shape)

    begin = draw(0.1, 0.7)
    in_gap = (times[:, None] > begin) & (times[:, None] < begin + draw(0.1, 0.3))
    mask = (random.random(values.shape) < observed) & ~in_gap
    mask[:, 0] = True
    return Series(
        times=times.astype(np.float32),
        values=np.where(mask, values, 0).astype(np.float32),
        mask=mask,
        labels=np.zeros(num, np.int32),
    )
