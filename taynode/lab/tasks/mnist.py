"""MNIST with the paper's classifier."""

from typing import ClassVar

from jaxtyping import PRNGKeyArray

from ...models import NeuralODEClassifier
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.mnist import load_mnist
from .base import as_data, Data
from .classification import AbstractClassification


class Mnist(AbstractClassification):
    """784-100-784 and a linear layer; 60,000 training images and the official test set."""

    name: ClassVar[str] = "mnist"
    description: ClassVar[str] = "MNIST, 28 x 28 pixels, the paper's classifier"
    can_augment = True

    def defaults(self, scale: str) -> TrainConfig:
        """At `paper`: SGD with momentum, 160 epochs, tolerance 1.4e-8 in double precision.

        At `laptop`: the first epochs on a fixed grid.
        """
        if scale == "paper":
            return self.settings(
                scale,
                SolveConfig(rtol=1.4e-8, atol=1.4e-8),
                epochs=160,
                precision="float64",
                optimizer=OptimizerConfig("sgd", 0.1, schedule="steps", boundaries=(60, 100, 140)),
                num_evaluations=32,
            )
        smoke = scale == "smoke"
        return self.settings(
            scale,
            SolveConfig(rtol=1e-5, atol=1e-5),
            epochs=1 if smoke else 12,
            batch_size=1000 if smoke else 100,
            training=SolveConfig(steps=2 if smoke else 4),
            optimizer=OptimizerConfig("sgd", 0.1),
            num_evaluations=1 if smoke else 4,
            eval_samples=100 if smoke else 1000,
            final_samples=500 if smoke else 10_000,
        )

    def load(self) -> Data:
        """60,000 training and 10,000 test images."""
        return as_data(load_mnist())

    def model(self, key: PRNGKeyArray) -> NeuralODEClassifier:
        """The classifier."""
        return NeuralODEClassifier(784, 100, 10, augment=self.augment, key=key)
