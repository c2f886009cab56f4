"""The common part of classification tasks."""

from collections.abc import Callable

import diffrax as dfx
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ...models import NeuralODEClassifier, Solve
from .base import AbstractTask, Batch, Outcome, Unsolved


Labels = Int[Array | np.ndarray, "num"]


class AbstractClassification(AbstractTask):
    """Images with labels, and a model that returns logits."""

    def loss(self, model: Callable, batch: Batch, solve: Solve, key: PRNGKeyArray) -> Outcome:
        """The cross-entropy, and the fraction of samples that are classified wrongly."""
        logits, solution = model(batch.inputs, solve, key=key)
        return outcome_of_logits(logits, batch.labels, solution)

    def initial_state(self, model: NeuralODEClassifier, batch: Batch) -> Float[Array, "num size"]:
        """The flattened inputs, and the zeros that the model appends."""
        return model.initial_state(jnp.asarray(batch.inputs))


def outcome_of_logits(
    logits: Float[Array, "num classes"], labels: Labels, solution: dfx.Solution | Unsolved
) -> Outcome:
    """The cross-entropy, and the fraction of samples that are classified wrongly."""
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    wrong = jnp.argmax(logits, axis=-1).astype(labels.dtype) != labels
    return Outcome(jnp.mean(loss), solution, {"error": jnp.mean(wrong.astype(loss.dtype))})
