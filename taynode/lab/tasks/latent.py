"""What tasks with time series have in common."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ...models.latent import importance_bound
from .base import AbstractTask, Outcome


class SeriesBatch(NamedTuple):
    """Series along the first axis: values, and which of them were observed."""

    values: Any
    mask: Any


class AbstractLatent(AbstractTask):
    """Series at common times, and a `LatentODE`."""

    num_draws: int = 3
    # The weight of the divergence from the prior is 0 until this epoch; then its distance from 1
    # falls by this factor in each.
    annealed_from: float = 10.0
    annealing: float = 0.99
    # The times of all series, in [0, 1]; known when the data has been loaded.
    times: np.ndarray
    # What time 1 is, and its unit.
    duration: tuple[float, str] = (1.0, "")
    # What the channels are called, and what 0 and 1 are in their units; known then, too, if at all.
    channel_names: Sequence[str] | None = None
    channel_range: tuple[np.ndarray, np.ndarray] | None = None

    def loss(self, model: Any, batch: Any, solve: Any, key: Any) -> Outcome:
        """Minus the importance-weighted bound per observed value, and the mean square error."""
        return self._loss(model, batch, solve, key, 1.0)

    def training_loss(self, model: Any, batch: Any, solve: Any, key: Any, epoch: Any) -> Outcome:
        """The same with a divergence from the prior that is phased in."""
        kl_weight = jnp.maximum(0.0, 1 - self.annealing ** (epoch - self.annealed_from))
        return self._loss(model, batch, solve, key, kl_weight.astype(batch.values.dtype))

    def _loss(self, model: Any, batch: Any, solve: Any, key: Any, kl_weight: Any) -> Outcome:
        values, mask = batch.values, batch.mask
        times = jnp.asarray(self.times, values.dtype)
        found = model(times, values, mask, solve, num_draws=self.num_draws, key=key)
        likelihood = model.log_likelihood(found.predicted, values, mask)
        bound = importance_bound(likelihood, found.z0, found.noise, found.std, kl_weight=kl_weight)
        observed = jnp.sum(mask.astype(values.dtype))
        per_value = 1 / jnp.maximum(observed, 1.0)
        squares = jnp.where(mask, (found.predicted - values) ** 2, 0.0)
        mse = jnp.sum(jnp.mean(squares, axis=0)) * per_value
        outcome = Outcome(-jnp.sum(bound) * per_value, found.solution, {"mse": mse}, observed)
        return self.extend(outcome, model, batch, found)

    def extend(self, outcome: Outcome, model: Any, batch: Any, found: Any) -> Outcome:
        """Whatever else is to be learned of the series; nothing by default."""
        del model, batch, found
        return outcome

    def more_metrics(self, model: Any, batch: Any, solve: Any, key: Any) -> dict[str, Any]:
        """Errors of what the model has not seen: between observations, and after them."""
        values, mask = batch.values, batch.mask
        times = jnp.asarray(self.times, values.dtype)
        parts = {name: seen_part(name, times) for name in UNSEEN}
        # One solve for both, as for two batches of series.
        twice = lambda x: jnp.concatenate([x] * len(parts))
        seen = jnp.concatenate([mask & part[:, None] for part in parts.values()])
        found = model(times, twice(values), seen, solve, num_draws=self.num_draws, key=key)
        squares = jnp.mean((found.predicted - twice(values)) ** 2, axis=0)
        hidden = twice(mask) & ~seen
        per_value = 1 / jnp.maximum(jnp.sum(mask.astype(values.dtype)), 1.0)
        total = lambda x: jnp.sum(x.astype(values.dtype)) * per_value
        metrics = {}
        for i, name in enumerate(parts):
            at = slice(i * len(values), (i + 1) * len(values))
            metrics[f"{name}_mse"] = total(jnp.where(hidden[at], squares[at], 0.0))
            metrics[f"{name}_share"] = total(hidden[at])
        return metrics

    def summaries(self, samples: Any) -> dict[str, float]:
        """The errors per value that was not seen; before, they were per value of a series."""
        mean = lambda name: float(np.average(samples.metrics[name], weights=samples.weight))
        out = {}
        for name in UNSEEN:
            if f"{name}_mse" in samples.metrics:
                share = mean(f"{name}_share")
                out[f"{name}_mse"] = mean(f"{name}_mse") / share if share > 0 else float("nan")
        return out

    def initial_state(self, model: Any, batch: Any) -> Any:
        """Where the paths of the report begin: at the means of the initial states."""
        times = jnp.asarray(self.times, batch.values.dtype)
        mean, _ = model.encoder(times, batch.values, batch.mask)
        return mean


# How well the model knows what it is not shown: every other time, or the second half of them.
UNSEEN = ("interpolation", "extrapolation")


def seen_part(name: str, times: Any) -> Any:
    """Which times are shown."""
    return jnp.arange(len(times)) % 2 == 0 if name == UNSEEN[0] else times <= 0.5
