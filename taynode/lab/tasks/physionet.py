"""PhysioNet 2012: two days of patients in intensive care, with the paper's latent ODE."""

from typing import ClassVar

import jax.random as jr
from jaxtyping import PRNGKeyArray

from ...models.latent import LatentODE
from ...models.recognition import RecurrentEncoder
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.physionet import load_physionet
from ..data.series import SeriesSplit
from .base import Data
from .latent import AbstractLatent, SeriesBatch


NUM_CHANNELS = 37
LATENT_SIZE = 20


class Physionet(AbstractLatent):
    """8,000 patients, 37 measurements, 49 hours; 48,147 parameters."""

    name: ClassVar[str] = "physionet"
    description: ClassVar[str] = "PhysioNet 2012, the paper's latent ODE"
    duration: tuple[float, str] = (48.0, "hours")

    def defaults(self, scale: str) -> TrainConfig:
        """Adamax, batches of 50, tolerance 1.4e-8; 100 epochs at `paper`, 40 at `laptop`."""
        smoke = scale == "smoke"
        tolerance = 1e-5 if smoke else 1.4e-8
        return self.settings(
            scale,
            SolveConfig(rtol=tolerance, atol=tolerance),
            epochs={"smoke": 1, "laptop": 40, "paper": 100}[scale],
            batch_size=50,
            # Single precision cannot resolve the paper's tolerance.
            precision="float32" if smoke else "float64",
            optimizer=OptimizerConfig("adamax", 1e-2, schedule="exponential", decay=0.999),
            num_evaluations={"smoke": 1, "laptop": 4, "paper": 20}[scale],
            eval_samples=50 if smoke else 200,
            final_samples=10_000 if scale == "paper" else 800,
        )

    def load(self) -> Data:
        """All patients at `paper`, half of them at `laptop`, and 250 at `smoke`."""
        split = self.load_split()
        return Data(*(SeriesBatch(part.values, part.mask) for part in (split.train, split.test)))

    def load_split(self) -> SeriesSplit:
        """The series and labels of the patients of the scale."""
        num = {"smoke": 250, "laptop": 4000, "paper": None}[self.scale]
        split = load_physionet(seed=0, num_patients=num)
        self.times = split.train.times
        self.channel_names, self.channel_range = list(split.names), (split.low, split.high)
        return split

    def model(self, key: PRNGKeyArray) -> LatentODE:
        """The latent ODE."""
        return LatentODE(NUM_CHANNELS, augment=self.augment, key=key)


class PhysionetMoving(Physionet):
    """The task `physionet` with an ODE-RNN as encoder."""

    name: ClassVar[str] = "physionet-ode-rnn"
    description: ClassVar[str] = "PhysioNet 2012, a latent ODE with an ODE-RNN as encoder"

    def model(self, key: PRNGKeyArray) -> LatentODE:
        """The latent ODE, with an encoder whose state moves between observations."""
        encoder_key, key = jr.split(key)
        encoder = RecurrentEncoder(NUM_CHANNELS, LATENT_SIZE, moves=True, key=encoder_key)
        return LatentODE(NUM_CHANNELS, LATENT_SIZE, encoder=encoder, augment=self.augment, key=key)
