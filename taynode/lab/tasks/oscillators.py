"""Generated time series: oscillators at irregular times."""

from typing import ClassVar

import jax.random as jr
from jaxtyping import PRNGKeyArray

from ...models.latent import LatentODE
from ...models.recognition import RecurrentEncoder
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.oscillators import oscillators
from .base import Data
from .latent import AbstractLatent, SeriesBatch


NUM_TRAIN, NUM_TEST = 1000, 250


class Oscillators(AbstractLatent):
    """Two channels with irregular times, gaps and noise. They need no download."""

    name: ClassVar[str] = "oscillators"
    description: ClassVar[str] = "irregularly observed oscillators, generated"

    def defaults(self, scale: str) -> TrainConfig:
        """Cosine-decayed Adam; tolerance 1e-5."""
        return self.settings(
            scale,
            SolveConfig(rtol=1e-5, atol=1e-5),
            epochs={"smoke": 1, "laptop": 100, "paper": 300}[scale],
            batch_size=200 if scale == "smoke" else 50,
            optimizer=OptimizerConfig("adam", 5e-3, schedule="cosine", clip=10.0),
            num_evaluations=1 if scale == "smoke" else 10,
            eval_samples=100,
        )

    def load(self) -> Data:
        """1,000 training and 250 test series."""
        # In one call, because all series share their times.
        series = oscillators(NUM_TRAIN + NUM_TEST, seed=0)
        self.times = series.times
        parts = slice(NUM_TRAIN), slice(NUM_TRAIN, None)
        return Data(*(SeriesBatch(series.values[part], series.mask[part]) for part in parts))

    def model(self, key: PRNGKeyArray) -> LatentODE:
        """A latent ODE with six latent dimensions."""
        encoder_key, key = jr.split(key)
        encoder = RecurrentEncoder(2, 6, state_size=20, width=30, key=encoder_key)
        return LatentODE(
            2, 6, width=40, depth=2, noise_std=0.1, encoder=encoder, augment=self.augment, key=key
        )
