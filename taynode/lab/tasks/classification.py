"""What classification tasks have in common."""

from typing import Any

import jax.numpy as jnp
import optax

from .base import AbstractTask, Outcome


class AbstractClassification(AbstractTask):
    """Images with labels, and a model that returns logits."""

    def loss(self, model: Any, batch: Any, solve: Any, key: Any) -> Outcome:
        """Cross-entropy, and the share of samples that are classified wrongly."""
        logits, solution = model(batch.inputs, solve, key=key)
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch.labels)
        wrong = jnp.argmax(logits, axis=-1).astype(batch.labels.dtype) != batch.labels
        return Outcome(jnp.mean(loss), solution, {"error": jnp.mean(wrong.astype(loss.dtype))})
