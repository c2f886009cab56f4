"""Flow matching: flows that are trained without a solve, and solved to draw samples."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from ..._types import Arrays, RealScalarLike
from ...models import (
    ContinuousFlow,
    FlowMatching,
    HutchinsonDivergence,
    Solve,
    TimeConv,
    TimeMLP,
)
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.digits import load_digits
from ..data.mnist import load_mnist
from .base import Data, Outcome, Unsolved
from .density import AbstractDensity, Events
from .density2d import Checkerboard, EightGaussians, Pinwheel, Rings, TwoMoons


class AbstractMatching(AbstractDensity):
    """The loss is that of flow matching, and evaluations are those of drawing samples.

    In training, a regularizer is penalized at the same points as the loss, so there is no solve.
    """

    matching: ClassVar[FlowMatching] = FlowMatching()

    def training_loss(
        self,
        model: ContinuousFlow,
        batch: Events,
        solve: Solve,
        key: PRNGKeyArray,
        epoch: RealScalarLike,
    ) -> Outcome:
        """The loss and the penalty at random points between data and noise."""
        del epoch
        loss, penalty = self.matching(model, batch, solve.regularizer, key=key)
        stats = {"nfe": jnp.ones((), loss.dtype)}
        return Outcome(
            loss, Unsolved(stats if penalty is None else stats | {"penalty": penalty}), {}
        )

    def loss(
        self, model: ContinuousFlow, batch: Events, solve: Solve, key: PRNGKeyArray
    ) -> Outcome:
        """The same loss, with the solve of as many new samples."""
        loss_key, sample_key, key = jr.split(key, 3)
        loss, _ = self.matching(model, batch, key=loss_key)
        _, solution = model.sample(sample_key, len(batch), solve, penalty_key=key)
        return Outcome(loss, solution, {})

    def penalized(self, y: Arrays) -> Arrays:
        """All of the state: there are no log-densities in it."""
        return y

    def more_metrics(
        self, model: ContinuousFlow, batch: Events, solve: Solve, key: PRNGKeyArray
    ) -> dict[str, Array]:
        """The negative log-density, in nats."""
        log_prob, _ = model.log_prob(batch, solve, key=key)
        return {"nll": -jnp.mean(log_prob)}


class MatchedTwoMoons(AbstractMatching, TwoMoons):
    """Two moons. The other tasks in the plane differ in their density alone."""

    name: ClassVar[str] = "flow-matching"
    description: ClassVar[str] = "two moons by flow matching; flow-matching-rings and so on"

    def defaults(self, scale: str) -> TrainConfig:
        """6,000 steps of Adam at `laptop`; batches of 500; samples at a tolerance of 1e-5."""
        smoke = scale == "smoke"
        return self.settings(
            scale,
            SolveConfig(rtol=1e-5, atol=1e-5),
            epochs={"smoke": 1, "laptop": 150, "paper": 500}[scale],
            batch_size=2000 if smoke else 500,
            optimizer=OptimizerConfig("adam", 2e-3, schedule="cosine"),
            num_evaluations=2 if smoke else 5,
            eval_samples=100 if smoke else 500,
            final_samples=1000,
        )

    def model(self, key: PRNGKeyArray) -> ContinuousFlow:
        """A flow with three layers of 128."""
        width = 16 if self.scale == "smoke" else 128
        field = TimeMLP((2, width, width, width, 2), jax.nn.silu, key=key)
        return ContinuousFlow(field, (2,))


class MatchedPinwheel(MatchedTwoMoons, Pinwheel):
    """Five arms of a spiral."""

    name: ClassVar[str] = "flow-matching-pinwheel"


class MatchedCheckerboard(MatchedTwoMoons, Checkerboard):
    """The black squares of a checkerboard."""

    name: ClassVar[str] = "flow-matching-checkerboard"


class MatchedGaussians(MatchedTwoMoons, EightGaussians):
    """Eight Gaussians on a circle."""

    name: ClassVar[str] = "flow-matching-gaussians"


class MatchedRings(MatchedTwoMoons, Rings):
    """Four concentric circles."""

    name: ClassVar[str] = "flow-matching-rings"


class MatchedDigits(AbstractMatching):
    """scikit-learn's digits as images of 8 x 8 pixels with values between -1 and 1."""

    name: ClassVar[str] = "flow-matching-digits"
    description: ClassVar[str] = "scikit-learn's digits as images, by flow matching"

    def defaults(self, scale: str) -> TrainConfig:
        """Adam; batches of 128; samples at a tolerance of 1e-5."""
        smoke = scale == "smoke"
        return self.settings(
            scale,
            SolveConfig(rtol=1e-5, atol=1e-5),
            epochs={"smoke": 1, "laptop": 400, "paper": 2000}[scale],
            batch_size=128,
            optimizer=OptimizerConfig("adam", 2e-3, schedule="cosine"),
            num_evaluations=1 if smoke else 4,
            eval_samples=50 if smoke else 200,
            final_samples=50 if smoke else 360,
        )

    def load(self) -> Data:
        """1437 training and 360 test images."""
        split = load_digits()
        return Data(*(2 * part.inputs[..., None] - 1 for part in (split.train, split.test)))

    def model(self, key: PRNGKeyArray) -> ContinuousFlow:
        """A flow of four convolutions, with Hutchinson's estimate of the divergence."""
        width = 4 if self.scale == "smoke" else 32
        field = TimeConv((1, width, width, width, 1), jax.nn.silu, key=key)
        return ContinuousFlow(field, (8, 8, 1))

    def to_shown(self, samples: Events) -> Events:
        """Samples as images with values between 0 and 1."""
        return jnp.clip((samples + 1) / 2, 0.0, 1.0)


class MatchedMnist(MatchedDigits):
    """MNIST as images of 14 x 14 pixels with values between -1 and 1."""

    name: ClassVar[str] = "flow-matching-mnist"
    description: ClassVar[str] = "MNIST images of 14 x 14 pixels, by flow matching"

    def defaults(self, scale: str) -> TrainConfig:
        """About 1,600 steps at `laptop`."""
        smoke = scale == "smoke"
        return dataclasses.replace(
            super().defaults(scale),
            epochs={"smoke": 1, "laptop": 20, "paper": 100}[scale],
            eval_samples=20 if smoke else 100,
            final_samples=20 if smoke else 300,
        )

    def load(self) -> Data:
        """Means of 2 x 2 pixels: 60,000 training images at `paper`, 10,000 at `laptop`."""
        split = load_mnist()
        most = {"smoke": (512, 100), "laptop": (10_000, 1000), "paper": (None, None)}[self.scale]
        parts = zip((split.train, split.test), most, strict=True)
        return Data(*(_halved(part.inputs[:number]) for part, number in parts))

    def model(self, key: PRNGKeyArray) -> ContinuousFlow:
        """A flow of four convolutions, with Hutchinson's estimate of the divergence."""
        width = 4 if self.scale == "smoke" else 32
        field = TimeConv((1, width, width, width, 1), jax.nn.silu, key=key)
        return ContinuousFlow(field, (14, 14, 1), HutchinsonDivergence())


def _halved(images: np.ndarray) -> np.ndarray:
    small = images.reshape(len(images), 14, 2, 14, 2).mean(axis=(2, 4))
    return 2 * small[..., None] - 1
