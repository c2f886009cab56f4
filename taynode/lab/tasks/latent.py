"""The common part of tasks with time series."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32, PRNGKeyArray

from ..._types import RealScalarLike
from ...models import importance_bound, LatentODE, Reconstruction, Solve
from .base import AbstractTask, Evaluated, Outcome


Values: TypeAlias = Float[Array | np.ndarray, "series times channels"]
Mask: TypeAlias = Bool[Array | np.ndarray, "series times channels"]

# Tests of the model on values that it is not shown: those of every other time, or those of the
# second half of the times.
UNSEEN = ("interpolation", "extrapolation")


class SeriesBatch(NamedTuple):
    """Series along the first axis. `mask` says which values were observed."""

    values: Values
    mask: Mask


class LabeledSeries(NamedTuple):
    """Series with a label each, -1 if unknown."""

    values: Values
    mask: Mask
    labels: Int32[Array | np.ndarray, "series"]


SomeSeries: TypeAlias = SeriesBatch | LabeledSeries


class AbstractLatent(AbstractTask):
    """Series at common times, and a `LatentODE`."""

    can_augment = True
    num_draws: int = 3
    # The weight of the divergence from the prior is 0 until this epoch. Then its distance from 1
    # falls by this factor in each epoch.
    annealed_from: float = 10.0
    annealing: float = 0.99
    # The times of all series, in [0, 1]. `load` sets them.
    times: Float[np.ndarray, "times"]
    # The length of the series and its unit.
    duration: tuple[float, str] = (1.0, "")
    # The names of the channels, and the values in their units that became 0 and 1. `load` may set
    # them.
    channel_names: Sequence[str] | None = None
    channel_range: tuple[np.ndarray, np.ndarray] | None = None

    def loss(self, model: LatentODE, batch: SomeSeries, solve: Solve, key: PRNGKeyArray) -> Outcome:
        """The negative importance-weighted bound per observed value, and the mean squared error."""
        return self._loss(model, batch, solve, key, 1.0)

    def training_loss(
        self,
        model: LatentODE,
        batch: SomeSeries,
        solve: Solve,
        key: PRNGKeyArray,
        epoch: RealScalarLike,
    ) -> Outcome:
        """The loss with a weight of the divergence from the prior that rises with the epoch."""
        kl_weight = jnp.maximum(0.0, 1 - self.annealing ** (epoch - self.annealed_from))
        return self._loss(model, batch, solve, key, kl_weight.astype(batch.values.dtype))

    def _loss(
        self,
        model: LatentODE,
        batch: SomeSeries,
        solve: Solve,
        key: PRNGKeyArray,
        kl_weight: RealScalarLike,
    ) -> Outcome:
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

    def extend(
        self, outcome: Outcome, model: LatentODE, batch: SomeSeries, found: Reconstruction
    ) -> Outcome:
        """Add further losses and metrics to an outcome; none by default."""
        del model, batch, found
        return outcome

    def more_metrics(
        self, model: LatentODE, batch: SomeSeries, solve: Solve, key: PRNGKeyArray
    ) -> dict[str, Array]:
        """Errors of values that the model is not shown: between observations, and after them."""
        values, mask = batch.values, batch.mask
        times = jnp.asarray(self.times, values.dtype)
        parts = {name: seen_part(name, times) for name in UNSEEN}
        # One solve for both parts, which are series of one batch.
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

    def summaries(self, samples: Evaluated) -> dict[str, float]:
        """The errors per hidden value. Those of `more_metrics` are per observed value."""
        mean = lambda name: float(np.average(samples.metrics[name], weights=samples.weight))
        out = {}
        for name in UNSEEN:
            if f"{name}_mse" in samples.metrics:
                share = mean(f"{name}_share")
                out[f"{name}_mse"] = mean(f"{name}_mse") / share if share > 0 else float("nan")
        return out

    def initial_state(self, model: LatentODE, batch: SomeSeries) -> Float[Array, "series size"]:
        """The means of the initial states, where the paths of the report begin."""
        times = jnp.asarray(self.times, batch.values.dtype)
        mean, _ = model.encoder(times, batch.values, batch.mask)
        return model.initial_state(mean)


def seen_part(name: str, times: Float[Array, "times"]) -> Bool[Array, "times"]:
    """The times at which the model is shown values, in one of the tests in `UNSEEN`."""
    return jnp.arange(len(times)) % 2 == 0 if name == UNSEEN[0] else times <= 0.5
