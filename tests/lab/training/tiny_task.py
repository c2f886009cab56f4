"""A task that trains in no time, for the tests of the loop and of the command line."""

import dataclasses
import os
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from taynode.lab import AbstractTask, Batch, Data, Outcome
from taynode.lab.config import OptimizerConfig, RegularizerConfig, SolveConfig, TrainConfig
from taynode.lab.tasks.density import AbstractDensity
from taynode.models import ConcatSquashMLP, ContinuousFlow, ToyFlow


def points(count, seed):
    x = np.random.default_rng(seed).uniform(-1, 1, (count, 1)).astype(np.float32)
    return Batch(x, x + x**3)


class Tiny(AbstractTask):
    """z -> z + z^3 with 4 hidden units; sampled R_2, so that every step draws random numbers."""

    name: ClassVar[str] = "tiny_task:Tiny"

    def defaults(self, scale):
        # Steps of equal length take less time to compile.
        grid = SolveConfig(solver="euler", steps=2)
        adaptive = SolveConfig(solver="bosh3", rtol=1e-3, atol=1e-3, max_steps=64)
        return TrainConfig(
            task=self.name,
            scale=scale,
            epochs={"smoke": 4, "laptop": 100, "paper": 3000}[scale],
            batch_size=16,
            training=grid,
            evaluation=adaptive,
            num_evaluations={"smoke": 2, "laptop": 20, "paper": 600}[scale],
            eval_samples=8,
            optimizer=OptimizerConfig("adam", 1e-2, schedule="cosine"),
            regularizer=RegularizerConfig("r2", 1e-3, schedule="warmup"),
        )

    def load(self):
        return Data(points(64, 0), points(20, 1))

    def model(self, key):
        return ToyFlow(4, key=key)

    def loss(self, model, batch, solve, key):
        out, solution = model(batch.inputs, solve, key=key)
        return Outcome(jnp.mean((out - batch.labels) ** 2), solution, {})


class Lost(Tiny):
    """Its data is not here."""

    def load(self):
        raise AssertionError("the data was asked for")


class OfProcess(Tiny):
    """Each process of a launcher has data of its own."""

    name: ClassVar[str] = "tiny_task:OfProcess"

    def load(self):
        seed = int(os.environ["TAYNODE_LAUNCH_PROCESS"])
        return Data(points(64, seed), points(20, 1))


class WithValidation(Tiny):
    """Validates and tests on half of the way that it learns to go, so it gets worse one day."""

    name: ClassVar[str] = "tiny_task:WithValidation"

    def load(self):
        data = super().load()
        inputs, labels = data.test
        half = Batch(inputs, (inputs + labels) / 2)
        return Data(data.train, test=half, valid=half)


class TinyFlow(AbstractDensity):
    """A shifted normal density in the plane."""

    name: ClassVar[str] = "tiny_task:TinyFlow"

    def defaults(self, scale):
        return dataclasses.replace(Tiny().defaults(scale), task=self.name)

    def load(self):
        draw = lambda seed: np.random.default_rng(seed).normal(0.5, 0.7, (64, 2)).astype(np.float32)
        return Data(draw(0), draw(1))

    def model(self, key):
        return ContinuousFlow(ConcatSquashMLP((2, 4, 2), jnp.tanh, key=key), (2,))
