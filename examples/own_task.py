"""A task of one's own, for `taynode train own_task:Spiral --regularizer r3 --weight 1e-3` here."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from taynode.lab import AbstractTask, Batch, Data, OptimizerConfig, Outcome, TrainConfig
from taynode.models import ConcatSquashMLP, NeuralODEClassifier


def two_spirals(count, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    angle = 3 * np.pi * np.sqrt(rng.uniform(0.02, 1.0, count))
    arm = angle + np.pi * labels
    points = angle[:, None] / 6 * np.stack([np.cos(arm), np.sin(arm)], axis=1)
    return Batch((points + 0.05 * rng.normal(size=(count, 2))).astype("float32"), labels)


class Spiral(AbstractTask):
    name = "own_task:Spiral"

    def defaults(self, scale):
        epochs = {"smoke": 1, "laptop": 100, "paper": 400}[scale]
        adam = OptimizerConfig("adam", 1e-2, schedule="cosine")
        return TrainConfig(task=self.name, scale=scale, epochs=epochs, optimizer=adam)

    def load(self):
        return Data(train=two_spirals(1000, seed=0), test=two_spirals(300, seed=1))

    def model(self, key):
        field_key, key = jr.split(key)
        field = ConcatSquashMLP((2, 32, 32, 2), jnp.tanh, key=field_key)
        return NeuralODEClassifier(2, 32, 2, vector_field=field, key=key)

    def loss(self, model: NeuralODEClassifier, batch, solve, key):
        logits, solution = model(batch.inputs, solve, key=key)
        margins = (logits[:, 1] - logits[:, 0]) * (2 * batch.labels - 1)
        error = jnp.mean((margins < 0).astype(margins.dtype))
        return Outcome(jnp.mean(jnp.logaddexp(0.0, -margins)), solution, {"error": error})
