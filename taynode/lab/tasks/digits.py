"""Handwritten digits of 8 x 8 pixels, which are part of scikit-learn."""

from typing import ClassVar

from jaxtyping import PRNGKeyArray

from ...models import NeuralODEClassifier
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.digits import load_digits
from .base import as_data, Data
from .classification import AbstractClassification


class Digits(AbstractClassification):
    """The paper's classifier on small images: 64-64-64, no download needed."""

    name: ClassVar[str] = "digits"
    description: ClassVar[str] = "scikit-learn's digits, 8 x 8 pixels, embedded"
    can_augment = True

    def defaults(self, scale: str) -> TrainConfig:
        """Cosine-decayed Adam; an adaptive solver in training and evaluation.

        Of the learning rates 0.02, 0.03 and 0.05, this one lets the unregularized model classify
        all training images correctly soonest without unstable dynamics.
        """
        return self.settings(
            scale,
            SolveConfig(),
            epochs={"smoke": 1, "laptop": 150, "paper": 300}[scale],
            batch_size=128,
            optimizer=OptimizerConfig("adam", 3e-2, schedule="cosine"),
            num_evaluations=2 if scale == "smoke" else 10,
        )

    def load(self) -> Data:
        """1437 training and 360 test images."""
        return as_data(load_digits())

    def model(self, key: PRNGKeyArray) -> NeuralODEClassifier:
        """The classifier."""
        return NeuralODEClassifier(64, 64, 10, augment=self.augment, key=key)
