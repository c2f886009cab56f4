"""The paper's first figure: a flow that maps z to z + z^3."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from ...models import Solve, ToyFlow
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.synthetic import cubic_map
from .base import AbstractTask, Batch, Data, Outcome


BOUND = 3.0


class Toy(AbstractTask):
    """One dimension, 50 hidden units."""

    name: ClassVar[str] = "toy"
    description: ClassVar[str] = "z -> z + z^3 in one dimension (Figure 1)"

    def defaults(self, scale: str) -> TrainConfig:
        """RMSprop at `paper`; otherwise Adam, whose fit is ten times better in the same time.

        Evaluations use a solver of order 3, whose cost the third derivative determines.
        """
        rmsprop = OptimizerConfig("rmsprop", 1e-2, momentum=0.99)
        adam = OptimizerConfig("adam", 3e-2, schedule="cosine")
        tolerance = SolveConfig(rtol=1e-6, atol=1e-6)
        return self.settings(
            scale,
            tolerance,
            epochs={"smoke": 4, "laptop": 1000, "paper": 500}[scale],
            batch_size=200,
            joint=False,
            evaluation=dataclasses.replace(tolerance, solver="bosh3"),
            optimizer=rmsprop if scale == "paper" else adam,
        )

    def load(self) -> Data:
        """Points between -3 and 3, and their images."""
        train, test = (
            Batch(*cubic_map(num, seed=seed, bound=BOUND)) for num, seed in ((1000, 0), (200, 1))
        )
        return Data(train, test)

    def model(self, key: PRNGKeyArray) -> ToyFlow:
        """The flow of a perceptron."""
        return ToyFlow(key=key)

    def loss(self, model: ToyFlow, batch: Batch, solve: Solve, key: PRNGKeyArray) -> Outcome:
        """The mean squared error."""
        out, solution = model(batch.inputs, solve, key=key)
        return Outcome(jnp.mean((out - batch.labels) ** 2), solution, {})
