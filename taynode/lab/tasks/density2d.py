"""Densities in the plane. They need no download."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, PRNGKeyArray

from ...models import ConcatSquashMLP, ContinuousFlow
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.synthetic import DENSITIES
from .base import Data
from .density import AbstractDensity


NUM_TRAIN, NUM_TEST = 20_000, 5_000


class TwoMoons(AbstractDensity):
    """Two half circles. The other tasks differ in their density alone."""

    name: ClassVar[str] = "density2d"
    description: ClassVar[str] = "two moons in the plane; density2d-pinwheel and so on for others"
    density: ClassVar[str] = "two_moons"

    def defaults(self, scale: str) -> TrainConfig:
        """Cosine-decayed Adam; batches of 250; tolerance 1e-5."""
        return self.settings(
            scale,
            SolveConfig(rtol=1e-5, atol=1e-5),
            epochs={"smoke": 1, "laptop": 25, "paper": 100}[scale],
            batch_size=2000 if scale == "smoke" else 250,
            optimizer=OptimizerConfig("adam", 3e-3, schedule="cosine"),
            num_evaluations=2 if scale == "smoke" else 10,
            eval_samples=100 if scale == "smoke" else 500,
        )

    def load(self) -> Data:
        """20,000 training and 5,000 test points."""
        make = DENSITIES[self.density]
        return Data(train=make(NUM_TRAIN, seed=0), test=make(NUM_TEST, seed=1))

    def fresh(self, num: int, *, seed: int) -> Float32[np.ndarray, "{num} 2"]:
        """New points of the density. The seeds 0 and 1 are those of the data."""
        return DENSITIES[self.density](num, seed=seed)

    def model(self, key: PRNGKeyArray) -> ContinuousFlow:
        """A flow with two layers of 64, gated by time, and the exact divergence."""
        field = ConcatSquashMLP((2, 64, 64, 2), jnp.tanh, key=key)
        return ContinuousFlow(field, (2,))


class Pinwheel(TwoMoons):
    """Five arms of a spiral."""

    name: ClassVar[str] = "density2d-pinwheel"
    density: ClassVar[str] = "pinwheel"


class Checkerboard(TwoMoons):
    """The black squares of a checkerboard."""

    name: ClassVar[str] = "density2d-checkerboard"
    density: ClassVar[str] = "checkerboard"


class EightGaussians(TwoMoons):
    """Eight Gaussians on a circle."""

    name: ClassVar[str] = "density2d-gaussians"
    density: ClassVar[str] = "eight_gaussians"


class Rings(TwoMoons):
    """Four concentric circles."""

    name: ClassVar[str] = "density2d-rings"
    density: ClassVar[str] = "rings"
