"""Densities in the plane, which need no download."""

from typing import Any, ClassVar

import jax.numpy as jnp

from ...models import ConcatSquashMLP, ContinuousFlow
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.synthetic import DENSITIES
from .base import Data
from .density import AbstractDensity


NUM_TRAIN, NUM_TEST = 20_000, 5_000


class TwoMoons(AbstractDensity):
    """Two half circles. The other densities differ in nothing else."""

    name: ClassVar[str] = "density2d"
    description: ClassVar[str] = "two moons in the plane; density2d-pinwheel and so on for others"
    density: ClassVar[str] = "two_moons"

    def defaults(self, scale: str) -> TrainConfig:
        """Cosine-decayed Adam; batches of 250; tolerance 1e-5."""
        tolerance = SolveConfig(rtol=1e-5, atol=1e-5)
        return TrainConfig(
            task=self.name,
            scale=scale,
            epochs={"smoke": 1, "laptop": 25, "paper": 100}[scale],
            batch_size=2000 if scale == "smoke" else 250,
            training=tolerance.for_training(),
            evaluation=tolerance,
            optimizer=OptimizerConfig("adam", 3e-3, schedule="cosine"),
            num_evaluations=2 if scale == "smoke" else 10,
            eval_samples=100 if scale == "smoke" else 500,
        )

    def load(self) -> Data:
        """20,000 points to train on and 5,000 to test on."""
        make = DENSITIES[self.density]
        return Data(train=make(NUM_TRAIN, seed=0), test=make(NUM_TEST, seed=1))

    def model(self, key: Any) -> ContinuousFlow:
        """Two layers of 64, gated by time, with the exact divergence."""
        field = ConcatSquashMLP((2, 64, 64, 2), jnp.tanh, key=key)
        return ContinuousFlow(field, (2,))


class Pinwheel(TwoMoons):
    """Five arms."""

    name: ClassVar[str] = "density2d-pinwheel"
    density: ClassVar[str] = "pinwheel"


class Checkerboard(TwoMoons):
    """Black squares."""

    name: ClassVar[str] = "density2d-checkerboard"
    density: ClassVar[str] = "checkerboard"


class EightGaussians(TwoMoons):
    """On a circle."""

    name: ClassVar[str] = "density2d-gaussians"
    density: ClassVar[str] = "eight_gaussians"


class Rings(TwoMoons):
    """Four circles."""

    name: ClassVar[str] = "density2d-rings"
    density: ClassVar[str] = "rings"
