"""The common part of density estimation tasks."""

from typing import TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, Shaped

from ...models import ContinuousFlow, sample_part, Solve
from .base import AbstractTask, Outcome


Events: TypeAlias = Shaped[Array, "num *event"]


class AbstractDensity(AbstractTask):
    """Samples, and a `ContinuousFlow`. The loss is in nats unless a task says otherwise."""

    def loss(
        self, model: ContinuousFlow, batch: Events, solve: Solve, key: PRNGKeyArray
    ) -> Outcome:
        """The mean of the negative log-density."""
        log_prob, solution = model.log_prob(batch, solve, key=key)
        return Outcome(-jnp.mean(log_prob), solution, {})

    def penalized(self, y: tuple[Array, Array]) -> Array:
        """The samples, without their log-densities."""
        return sample_part(y)

    def more_metrics(
        self, model: ContinuousFlow, batch: Events, solve: Solve, key: PRNGKeyArray
    ) -> dict[str, Array]:
        """The evaluations in sampling, of as many new samples as the batch has."""
        _, solution = model.sample(key, len(batch), solve)
        return {"sampling_nfe": jnp.mean(solution.stats["nfe"].astype(model.dtype))}

    def initial_state(self, model: ContinuousFlow, batch: Events) -> Events:
        """The samples, where the paths of the report begin."""
        del model
        return batch
