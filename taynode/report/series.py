"""What a latent ODE makes of single series, for `samples.npz`."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..training.build import make_solve
from ..training.config import SolveConfig


NUM_SERIES = 3
NUM_CHANNELS = 2
NUM_DRAWS = 30
NUM_TIMES = 101
# Of the interval from 0 to 1 is drawn this much more, which nothing was observed of.
AHEAD = 0.25
QUANTILES = (0.05, 0.95)


def series_arrays(
    task: Any, model: Any, evaluation: SolveConfig, test_data: Any
) -> dict[str, np.ndarray]:
    """Some test series, what the model says between and behind their observations, and how sure.

    Those with the most observations, and of these the channels with the most.
    """
    mask = np.asarray(test_data.mask)
    chosen = np.argsort(-mask.sum(axis=(1, 2)), kind="stable")[:NUM_SERIES]
    channels = np.argsort(-mask[chosen].sum(axis=(0, 1)), kind="stable")[:NUM_CHANNELS]
    values = np.asarray(test_data.values)[chosen]
    mask = mask[chosen]
    times = jnp.asarray(task.times, values.dtype)
    dense = jnp.linspace(0.0, 1.0 + AHEAD, NUM_TIMES, dtype=values.dtype)
    solve = make_solve(evaluation)

    @eqx.filter_jit
    def predict(model):
        found = model(times, values, mask, solve, num_draws=NUM_DRAWS, at=dense, key=jr.key(0))
        return found.predicted[..., channels]

    predicted = np.asarray(predict(model))
    low, high = np.quantile(predicted, QUANTILES, axis=0)
    names = getattr(task, "channel_names", None) or [f"channel {i}" for i in range(mask.shape[-1])]
    return {
        "series_times": np.asarray(times),
        "series_values": np.where(mask, values, np.nan)[..., channels],
        "series_names": np.array([names[i] for i in channels]),
        "series_dense": np.asarray(dense),
        "series_mean": predicted.mean(axis=0),
        "series_low": low,
        "series_high": high,
    }
