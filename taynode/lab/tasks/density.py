"""What density estimation tasks have in common."""

from typing import Any

import jax.numpy as jnp

from ...models.flow import sample_part
from .base import AbstractTask, Outcome


class AbstractDensity(AbstractTask):
    """Samples, and a `ContinuousFlow`; the loss is in nats unless a task says otherwise."""

    def loss(self, model: Any, batch: Any, solve: Any, key: Any) -> Outcome:
        """The mean of minus the log-density."""
        log_prob, solution = model.log_prob(batch, solve, key=key)
        return Outcome(-jnp.mean(log_prob), solution, {})

    def charged(self, y: Any) -> Any:
        """The samples, and not their log-densities."""
        return sample_part(y)

    def more_metrics(self, model: Any, batch: Any, solve: Any, key: Any) -> dict[str, Any]:
        """Evaluations in sampling, of as many new samples as the batch has."""
        _, solution = model.sample(key, len(batch), solve)
        return {"sampling_nfe": jnp.mean(solution.stats["nfe"].astype(model.dtype))}

    def initial_state(self, model: Any, batch: Any) -> Any:
        """Where the paths of the report begin: at the samples."""
        del model
        return batch
