"""Images that a neural SDE classifies."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import diffrax as dfx
from jaxtyping import PRNGKeyArray

from ..._types import RealScalarLike
from ...models import NeuralSDEClassifier, Solve
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.digits import load_digits
from ..data.mnist import load_mnist
from .base import as_data, Batch, Data, Outcome
from .classification import AbstractClassification, outcome_of_logits
from .sde import one_path


# The paths of an image: as many as published, in training and in evaluations.
TRAINING_DRAWS, DRAWS = 1, 10


class AbstractSDEClassification(AbstractClassification):
    """The classifier of Pal, Ma, Shah and Rackauckas (ICML 2021).

    Layers, paths and the rate of Adam are theirs: a linear map to 32 numbers, a drift 32-64-32 with
    a tanh, a linear diagonal diffusion, and a linear map to logits. What differs:

    - Their solver is SOSRI with tolerances of 0.14. Here it is SPaRK, which solves equations of
      Stratonovich, and a smaller tolerance.
    - They count evaluations of a solve of 512 images jointly, with a path each. Here each image is
      solved alone, with its ten paths.
    - They train on all images of MNIST in batches of 512, for 40 epochs, with a nearly constant
      rate. Here batches are smaller, and the rate falls to zero.
    """

    in_size: ClassVar[int]

    def defaults(self, scale: str) -> TrainConfig:
        """Cosine-decayed Adam; SPaRK at a tolerance of 1e-2."""
        smoke = scale == "smoke"
        return self.settings(
            scale,
            SolveConfig("spark", rtol=1e-2, atol=1e-2),
            epochs={"smoke": 1, "laptop": 20, "paper": 40}[scale],
            batch_size=128,
            optimizer=OptimizerConfig("adam", 1e-2, schedule="cosine"),
            num_evaluations=1 if smoke else 4,
            eval_samples=20 if smoke else 200,
        )

    def model(self, key: PRNGKeyArray) -> NeuralSDEClassifier:
        """The classifier; at `smoke` a smaller one."""
        sizes = {"size": 4, "width": 8} if self.scale == "smoke" else {}
        return NeuralSDEClassifier(self.in_size, 10, **sizes, key=key)

    def loss(self, model: Callable, batch: Batch, solve: Solve, key: PRNGKeyArray) -> Outcome:
        """The cross-entropy of the mean logits of ten paths."""
        return self._outcome(model, batch, solve, key, DRAWS)

    def training_loss(
        self,
        model: Callable,
        batch: Batch,
        solve: Solve,
        key: PRNGKeyArray,
        epoch: RealScalarLike,
    ) -> Outcome:
        """The cross-entropy with a single path of each image."""
        del epoch
        return self._outcome(model, batch, solve, key, TRAINING_DRAWS)

    def _outcome(
        self, model: Callable, batch: Batch, solve: Solve, key: PRNGKeyArray, num_draws: int
    ) -> Outcome:
        logits, solution = model(batch.inputs, solve, num_draws=num_draws, key=key)
        return outcome_of_logits(logits, batch.labels, solution)

    def vector_field(self, model: NeuralSDEClassifier) -> dfx.MultiTerm:
        """The equation of one path, with a fixed realization of the noise, for the page."""
        return one_path(model.sde, len(model.into.bias))


class DigitsSDE(AbstractSDEClassification):
    """Small images, which need no download."""

    name: ClassVar[str] = "digits-sde"
    description: ClassVar[str] = "scikit-learn's digits, 8 x 8 pixels, by a neural SDE, embedded"
    in_size: ClassVar[int] = 64

    def load(self) -> Data:
        """1437 training and 360 test images."""
        return as_data(load_digits())


class MnistSDE(AbstractSDEClassification):
    """The published images, at `laptop` the first 10,000 of the 60,000 to train on.

    With half of the epochs of the digits: as many steps with 6,400 images overfit more (error of
    test images 9.5 % instead of 8.9 %, with seed 100).
    """

    name: ClassVar[str] = "mnist-sde"
    description: ClassVar[str] = "MNIST, 28 x 28 pixels, by a neural SDE"
    in_size: ClassVar[int] = 784

    def defaults(self, scale: str) -> TrainConfig:
        """Those of the digits; at `paper` the published batches, on all images."""
        return dataclasses.replace(
            super().defaults(scale),
            epochs={"smoke": 1, "laptop": 10, "paper": 40}[scale],
            batch_size=512 if scale == "paper" else 128,
            train_samples={"smoke": 256, "laptop": 10_000, "paper": None}[scale],
            final_samples={"smoke": 100, "laptop": 2_000, "paper": 10_000}[scale],
        )

    def load(self) -> Data:
        """60,000 training and 10,000 test images."""
        return as_data(load_mnist())
