"""What tasks with time series have in common."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..models.latent import importance_bound
from .base import AbstractTask, Outcome


class SeriesBatch(NamedTuple):
    """Series along the first axis: values, and which of them were observed."""

    values: Any
    mask: Any


class AbstractLatent(AbstractTask):
    """Series at common times, and a `LatentODE`."""

    num_draws: int = 3
    # The weight of the divergence from the prior is 0 until this epoch, and then rises to 1.
    annealed_from: float = 10.0
    annealing: float = 0.99
    # The times of all series, in [0, 1]; known when the data has been loaded.
    times: np.ndarray

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
        bound = importance_bound(likelihood, found.z0, found.mean, found.std, kl_weight=kl_weight)
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

    def initial_state(self, model: Any, batch: Any) -> Any:
        """Where the paths of the report begin: at the means of the initial states."""
        times = jnp.asarray(self.times, batch.values.dtype)
        mean, _ = model.encoder(times, batch.values, batch.mask)
        return mean
