"""MNIST as a density: the paper's convolutional flow."""

import math
from typing import ClassVar, TypeAlias

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray, UInt8

from ...models import ContinuousFlow, HutchinsonDivergence, Solve, TimeConv
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.mnist import load_mnist
from .base import Data, Outcome
from .density import AbstractDensity


ALPHA = 1e-5
LEVELS = 256

Pixels: TypeAlias = UInt8[Array | np.ndarray, "num side side"]
Images: TypeAlias = Float[Array, "num side side 1"]


class MnistFlow(AbstractDensity):
    """Three layers of 64 channels, and a last one that is zero at first; 76,810 parameters.

    At `laptop`, images of 14 x 14 pixels and 16 channels; at `smoke`, 7 x 7 and 4.
    """

    name: ClassVar[str] = "mnist-flow"
    description: ClassVar[str] = "MNIST images as a density, the paper's convolutional flow"

    @property
    def side(self) -> int:
        """The width of an image in pixels."""
        return {"smoke": 7, "laptop": 14, "paper": 28}[self.scale]

    def defaults(self, scale: str) -> TrainConfig:
        """At `paper`: Adam with warm-up, 100 epochs of batches of 200, tolerance 1e-5."""
        tolerance = SolveConfig(rtol=1e-5, atol=1e-5)
        if scale == "paper":
            return self.settings(
                scale,
                tolerance,
                epochs=100,
                batch_size=200,
                optimizer=OptimizerConfig(
                    "adam", 1e-3, schedule="steps", boundaries=(80,), warmup=1000, clip=1e10
                ),
                num_evaluations=20,
            )
        smoke = scale == "smoke"
        return self.settings(
            scale,
            tolerance,
            epochs=1,
            # Many small steps: they lower the loss faster than few large ones.
            batch_size=100 if smoke else 32,
            # 200 steps.
            train_samples=None if smoke else 6_400,
            training=SolveConfig(solver="rk4", steps=2) if smoke else tolerance,
            optimizer=OptimizerConfig("adam", 1e-2, schedule="cosine", warmup=30),
            num_evaluations=1 if smoke else 2,
            eval_samples=100,
            final_samples=100 if smoke else 200,
        )

    def load(self) -> Data:
        """60,000 training and 10,000 test images of integers; 1,000 of each at `smoke`."""
        split = load_mnist()
        most = 1000 if self.scale == "smoke" else None
        return Data(*(self._integers(part.inputs[:most]) for part in (split.train, split.test)))

    def _integers(self, images: np.ndarray) -> np.ndarray:
        factor = images.shape[1] // self.side
        if factor > 1:
            shape = len(images), self.side, factor, self.side, factor
            images = images.reshape(shape).mean(axis=(2, 4))
        return np.rint(255 * images).astype(np.uint8)

    def model(self, key: PRNGKeyArray) -> ContinuousFlow:
        """The flow, with Hutchinson's estimate of the divergence from random signs."""
        width = {"smoke": 4, "laptop": 16, "paper": 64}[self.scale]
        field = TimeConv((1, width, width, width, 1), zero_last=True, key=key)
        return ContinuousFlow(field, (self.side, self.side, 1), HutchinsonDivergence())

    def loss(
        self, model: ContinuousFlow, batch: Pixels, solve: Solve, key: PRNGKeyArray
    ) -> Outcome:
        """Bits per dimension of images that uniform noise makes continuous."""
        noise_key, key = jr.split(key)
        z, change = to_logits(batch[..., None], noise_key, model.dtype)
        log_prob, solution = model.log_prob(z, solve, key=key)
        return Outcome(jnp.mean(bits_per_dim(log_prob + change, self.side**2)), solution, {})

    def to_shown(self, samples: Images) -> Images:
        """Samples as images with values between 0 and 1."""
        return from_logits(samples)

    def initial_state(self, model: ContinuousFlow, batch: Pixels) -> Images:
        """The logits of images, without noise."""
        return _logit((jnp.asarray(batch[..., None], model.dtype) + 0.5) / LEVELS)


def to_logits(
    images: UInt8[Array | np.ndarray, "num side side 1"], key: PRNGKeyArray, dtype: DTypeLike
) -> tuple[Images, Float[Array, "num"]]:
    """The logits of images with uniform noise, and the log of the change of volume of each."""
    noise = jr.uniform(key, images.shape, dtype)
    unit = (jnp.asarray(images, dtype) + noise) / LEVELS
    inside = ALPHA + (1 - 2 * ALPHA) * unit
    slope = jnp.log(1 - 2 * ALPHA) - jnp.log(inside) - jnp.log1p(-inside)
    return _logit(unit), jnp.sum(slope, axis=(-3, -2, -1))


def from_logits(z: Images) -> Images:
    """Images with values between 0 and 1."""
    inside = 1 / (1 + jnp.exp(-z))
    return jnp.clip((inside - ALPHA) / (1 - 2 * ALPHA), 0.0, 1.0)


def bits_per_dim(
    log_prob: Float[Array | np.ndarray, "num"], size: int
) -> Float[Array | np.ndarray, "num"]:
    """Bits per dimension from log-densities of images with values between 0 and 1."""
    return -(log_prob / size - math.log(LEVELS)) / math.log(2)


def _logit(unit: Images) -> Images:
    inside = ALPHA + (1 - 2 * ALPHA) * unit
    return jnp.log(inside) - jnp.log1p(-inside)
