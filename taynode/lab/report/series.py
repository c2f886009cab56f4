"""Predictions of a latent ODE for single series, for `samples.npz`."""

from statistics import NormalDist
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ...models import LatentODE
from ..config import SolveConfig
from ..training.build import make_solve
from ..training.keys import Keys
from .samples import SampleArrays


NUM_SERIES = 3
NUM_CHANNELS = 2
NUM_DRAWS = 30
NUM_NOISE = 21
NUM_TIMES = 101
# The model gets the observations until this time, except those of each fourth time.
SHOWN_UNTIL, HIDDEN = 0.75, 4
QUANTILES = (0.05, 0.95)


def series_arrays(
    task: Any, model: LatentODE, evaluation: SolveConfig, test_data: Any, *, seed: int = 0
) -> SampleArrays:
    """Some test series, the observations that the model gets, and its predictions.

    They are the series and channels with the most observations, in the units of the source if the
    task knows them.
    """
    mask = np.asarray(test_data.mask)
    chosen = np.argsort(-mask.sum(axis=(1, 2)), kind="stable")[:NUM_SERIES]
    channels = np.argsort(-mask[chosen].sum(axis=(0, 1)), kind="stable")[:NUM_CHANNELS]
    values = np.asarray(test_data.values)[chosen]
    mask = mask[chosen]
    times = jnp.asarray(task.times, values.dtype)
    shown = (np.asarray(times) <= SHOWN_UNTIL) & (np.arange(len(times)) % HIDDEN != HIDDEN - 1)
    seen = mask & shown[:, None]
    dense = jnp.linspace(0.0, 1.0, NUM_TIMES, dtype=values.dtype)
    solve = make_solve(evaluation)

    @eqx.filter_jit
    def predict(model, key):
        found = model(times, values, seen, solve, num_draws=NUM_DRAWS, at=dense, key=key)
        return found.predicted[..., channels]

    mean = np.asarray(predict(model, Keys(seed).series))
    # States that a failed solve did not reach are infinite.
    mean = np.where(np.isfinite(mean), mean, np.nan)
    # The band includes the noise of observations, at its quantiles, so that the band is smooth.
    noise = [NormalDist().inv_cdf((i + 0.5) / NUM_NOISE) for i in range(NUM_NOISE)]
    drawn = np.concatenate([mean + model.noise_std * x for x in noise])
    low, high = np.quantile(drawn, QUANTILES, axis=0)
    names = task.channel_names or [f"channel {i + 1}" for i in range(mask.shape[-1])]
    bottom, top = task.channel_range or (np.zeros(mask.shape[-1]), np.ones(mask.shape[-1]))
    # Constant channels were only shifted.
    width = np.where(top > bottom, top - bottom, 1.0)
    to_units = lambda x: bottom[channels] + x * width[channels]
    length, unit = task.duration
    return {
        "series_times": length * np.asarray(times),
        "series_values": to_units(np.where(mask, values, np.nan)[..., channels]),
        "series_seen": seen[..., channels],
        "series_names": np.array([names[i] for i in channels]),
        "series_dense": length * np.asarray(dense),
        "series_mean": to_units(mean.mean(axis=0)),
        "series_low": to_units(low),
        "series_high": to_units(high),
        "series_end": np.array(SHOWN_UNTIL * length),
        "series_unit": np.array(unit),
    }
