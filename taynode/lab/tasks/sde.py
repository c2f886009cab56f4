"""Samples and paths that a neural stochastic differential equation (SDE) generates."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...models import energy_score, NeuralSDE, Solve
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.rotations import law, rotations
from ..data.synthetic import DENSITIES
from .base import AbstractTask, Data, Outcome


# How many paths the model draws for each sample of the data.
NUM_DRAWS = 4


def one_path(model: NeuralSDE, size: int) -> dfx.MultiTerm:
    """The equation of a single path, with a fixed realization of the noise."""
    (dtype, *_) = {x.dtype for x in jtu.tree_leaves(eqx.filter(model, eqx.is_inexact_array))}
    return model.terms(jnp.zeros(size, dtype), jr.key(0))


Points: TypeAlias = Float[Array, "num 2"]
Paths: TypeAlias = Float[Array, "num times 2"]


class AbstractSDE(AbstractTask):
    """A neural SDE in the plane. `load` and `loss` are those of a task."""

    def defaults(self, scale: str) -> TrainConfig:
        """Cosine-decayed Adam; SPaRK at a tolerance of 3e-3."""
        smoke = scale == "smoke"
        return self.settings(
            scale,
            SolveConfig("spark", rtol=3e-3, atol=3e-3),
            epochs={"smoke": 1, "laptop": 20, "paper": 100}[scale],
            batch_size=256 if smoke else 64,
            optimizer=OptimizerConfig("adam", 5e-3, schedule="cosine"),
            num_evaluations=1 if smoke else 4,
            eval_samples=20 if smoke else 200,
        )

    @property
    def num_train(self) -> int:
        """The number of training samples."""
        return {"smoke": 512, "laptop": 2048, "paper": 8192}[self.scale]

    def model(self, key: PRNGKeyArray) -> NeuralSDE:
        """Networks with hidden layers of 64."""
        return NeuralSDE(2, 8 if self.scale == "smoke" else 64, key=key)

    def vector_field(self, model: NeuralSDE) -> dfx.MultiTerm:
        """The equation of one path, with a fixed realization of the noise, for the page."""
        return one_path(model, 2)


class SampledSDE(AbstractSDE):
    """Noise becomes one of eight Gaussians at time 1. The paths in between are free."""

    name: ClassVar[str] = "sde"
    description: ClassVar[str] = "eight Gaussians by a neural SDE, generated"

    def load(self) -> Data:
        """Training and test points."""
        return Data(self.fresh(self.num_train, seed=0), self.fresh(2000, seed=1))

    def fresh(self, num: int, *, seed: int) -> np.ndarray:
        """New points of the law. The seeds 0 and 1 are those of the data."""
        return DENSITIES["eight_gaussians"](num, seed=seed)

    def loss(self, model: NeuralSDE, batch: Points, solve: Solve, key: PRNGKeyArray) -> Outcome:
        """The energy score of all states at time 1, in the mean over the batch."""
        start_key, path_key, key = jr.split(key, 3)
        start = jr.normal(start_key, (len(batch) * NUM_DRAWS, 2), batch.dtype)
        end = jnp.ones(1, batch.dtype)
        draws, solution = model(start, end, solve, path_key=path_key, key=key)
        return Outcome(energy_score(draws[:, -1], batch), solution, {})

    def initial_state(self, model: NeuralSDE, batch: Points) -> Points:
        """Noise."""
        del model
        return jr.normal(jr.key(0), batch.shape, batch.dtype)


class RotatingSDE(AbstractSDE):
    """Paths of a noisy rotation, whose law is known at all times.

    The draws begin where a path of the data begins.
    """

    name: ClassVar[str] = "sde-rotation"
    description: ClassVar[str] = "paths of a noisy rotation by a neural SDE, generated"

    def load(self) -> Data:
        """Training and test paths at 17 times."""
        return Data(rotations(self.num_train, seed=0), rotations(500, seed=1))

    def loss(
        self, model: Callable[..., Any], batch: Paths, solve: Solve, key: PRNGKeyArray
    ) -> Outcome:
        """The mean energy score, with two measures of how close the draws are to the known law.

        `mean_error` is the mean square of the error of means, without that due to the number of
        draws; `variance` is the variance of draws in units of the true one.
        """
        path_key, key = jr.split(key)
        num, num_times, _ = batch.shape
        start = jnp.repeat(batch[:, 0], NUM_DRAWS, axis=0)
        times = np.linspace(0.0, 1.0, num_times)[1:]
        draws, solution = model(
            start, jnp.asarray(times, batch.dtype), solve, path_key=path_key, key=key
        )
        draws = draws.reshape(num, NUM_DRAWS, *draws.shape[1:])
        scores = jax.vmap(energy_score)(draws, batch[:, None, 1:])
        # The law is linear in the first state.
        basis = law(np.eye(2), times)
        means = jnp.einsum("ktd,nk->ntd", jnp.asarray(basis.mean, batch.dtype), batch[:, 0])
        true = jnp.asarray(basis.variance, batch.dtype)[:, None]
        variance = jnp.var(draws, axis=1, ddof=1)
        error = (jnp.mean(draws, axis=1) - means) ** 2 - variance / NUM_DRAWS
        metrics = {"mean_error": jnp.mean(error), "variance": jnp.mean(variance / true)}
        return Outcome(jnp.mean(scores), solution, metrics)

    def initial_state(self, model: NeuralSDE, batch: Paths) -> Float[Array, "num 2"]:
        """The first points."""
        del model
        return batch[:, 0]
