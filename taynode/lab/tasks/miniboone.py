"""MINIBOONE: a density in 43 dimensions with the paper's flow."""

from typing import ClassVar

import jax
from jaxtyping import PRNGKeyArray

from ...models import ConcatSquashMLP, ContinuousFlow, HutchinsonDivergence
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.miniboone import load_miniboone
from .base import Data
from .density import AbstractDensity


SIZE = 43


class Miniboone(AbstractDensity):
    """43-860-860-43 with softplus, 820,612 parameters; a fifth as wide at smaller scales."""

    name: ClassVar[str] = "miniboone"
    description: ClassVar[str] = "MINIBOONE, 43 dimensions, the paper's flow"

    def defaults(self, scale: str) -> TrainConfig:
        """At `paper`: Adam, 500 epochs of batches of 1000, tolerance 1.4e-8."""
        if scale == "paper":
            return self.settings(
                scale,
                SolveConfig(rtol=1.4e-8, atol=1.4e-8),
                epochs=500,
                batch_size=1000,
                precision="float64",
                # 30 steps an epoch: after 9,000 and 12,750 steps.
                optimizer=OptimizerConfig(
                    "adam", 1e-3, schedule="steps", boundaries=(300, 425), weight_decay=2e-6
                ),
                num_evaluations=50,
            )
        smoke = scale == "smoke"
        return self.settings(
            scale,
            SolveConfig(rtol=1e-5, atol=1e-5),
            epochs=1 if smoke else 55,
            batch_size=1000 if smoke else 250,
            optimizer=OptimizerConfig("adam", 1e-2, schedule="cosine"),
            num_evaluations=1 if smoke else 15,
            eval_samples=100 if smoke else 300,
            final_samples=300 if smoke else 4000,
        )

    def load(self) -> Data:
        """The standardized rows of `taynode.lab.data.load_miniboone`."""
        rows = load_miniboone()
        self.data_label = rows.label if rows.is_partial else ""
        return Data(train=rows.train, test=rows.test, valid=rows.valid)

    def model(self, key: PRNGKeyArray) -> ContinuousFlow:
        """The flow, with Hutchinson's estimate of the divergence from Gaussian noise."""
        width = (20 if self.scale == "paper" else 4) * SIZE
        field = ConcatSquashMLP((SIZE, width, width, SIZE), jax.nn.softplus, key=key)
        return ContinuousFlow(field, (SIZE,), HutchinsonDivergence("gaussian"))
