"""A spiral with noise, whose means and variances over time a neural SDE learns."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...models import AutonomousMLP, DiagonalNoise, glorot_dense, NeuralSDE, Solve
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.noisy_spiral import Moments, moments, noisy_spirals, NUM_TIMES, START
from .base import Data, Outcome
from .sde import AbstractSDE


# How many paths the model draws for each sample, as published.
NUM_DRAWS = 100


def cubes(y: Array) -> Array:
    """The cubes of a state, elementwise."""
    return y * y * y


class SpiralSDE(AbstractSDE):
    """The spiral of Pal, Ma, Shah and Rackauckas (ICML 2021), by the method of moments.

    Model and loss are theirs: a drift 2-50-2 of the cubes of the state with a tanh, a linear
    diagonal diffusion, and the mean squares of the errors that means and variances of 100 paths
    have at 30 times. All trajectories begin at the same point, so a sample is a draw of 100 paths,
    solved jointly, and evaluations are those of such a solve, as in their numbers. What differs:

    - Their solver is SOSRI with tolerances of 0.3. Here it is SPaRK, which solves equations of
      Stratonovich, with tolerances of 1e-2. With 0.3 paths of the true equation blow up, and
      with 0.1 errors of the solver make its loss four times as large. With 1e-2 its loss is 9.3e-3,
      which the number of draws explains, for 111 evaluations of the drift.
    - Their optimizer is AdaBelief, 250 steps with a rate of 0.01. Here it is Adam, with more steps
      and a rate that falls to zero.
    """

    name: ClassVar[str] = "sde-spiral"
    description: ClassVar[str] = "means and variances of a noisy spiral by a neural SDE, generated"

    def defaults(self, scale: str) -> TrainConfig:
        """Cosine-decayed Adam; SPaRK at a tolerance of 1e-2."""
        smoke = scale == "smoke"
        return self.settings(
            scale,
            SolveConfig("spark", rtol=1e-2, atol=1e-2),
            epochs={"smoke": 1, "laptop": 10, "paper": 40}[scale],
            batch_size=1,
            optimizer=OptimizerConfig("adam", 1e-2, schedule="cosine"),
            num_evaluations=1 if smoke else 4,
            eval_samples=2 if smoke else 100,
            final_samples=2 if smoke else 100,
        )

    @property
    def num_train(self) -> int:
        """The number of draws in an epoch."""
        return 4 if self.scale == "smoke" else 100

    @property
    def num_draws(self) -> int:
        """The number of paths of a draw."""
        return 4 if self.scale == "smoke" else NUM_DRAWS

    def load(self) -> Data:
        """The moments of generated trajectories, which are the same in all samples of a split."""
        num_paths = 500 if self.scale == "smoke" else 20_000
        parts = []
        for seed, num in enumerate((self.num_train, 100)):
            found = moments(noisy_spirals(num_paths, seed=seed))
            parts.append(Moments(*(np.repeat(x, num, axis=0).astype(np.float32) for x in found)))
        return Data(*parts)

    def model(self, key: PRNGKeyArray) -> NeuralSDE:
        """The published networks."""
        drift_key, noise_key = jr.split(key)
        drift = AutonomousMLP((2, 50, 2), first=cubes, dense=glorot_dense, key=drift_key)
        noise = AutonomousMLP((2, 2), first=None, dense=glorot_dense, key=noise_key)
        return NeuralSDE(2, 50, drift=drift, diffusion=DiagonalNoise(noise, None), key=key)

    def loss(
        self, model: Callable[..., Any], batch: Moments, solve: Solve, key: PRNGKeyArray
    ) -> Outcome:
        """The mean squares of the errors of means and of variances, added.

        Even the true law has some loss, since 100 paths have moments of their own. `mean_error` and
        `variance_error` are both terms without that, in the mean over many draws: products of the
        errors of two halves of the paths.
        """
        path_key, key = jr.split(key)
        num, num_draws = len(batch.mean), self.num_draws
        start = jnp.broadcast_to(jnp.asarray(START, batch.mean.dtype), (num * num_draws, 2))
        times = jnp.asarray(np.linspace(0.0, 1.0, NUM_TIMES), start.dtype)
        draws, solution = model(start, times, solve, path_key=path_key, key=key)
        draws = draws.reshape(num, 1, num_draws, NUM_TIMES, 2)
        halves = draws.reshape(num, 2, num_draws // 2, NUM_TIMES, 2)
        mean_error, variance_error = _errors(draws, batch)
        loss = jnp.mean(mean_error**2) + jnp.mean(variance_error**2)
        names = "mean_error", "variance_error"
        products = (jnp.mean(jnp.prod(error, axis=1)) for error in _errors(halves, batch))
        return Outcome(loss, solution, dict(zip(names, products, strict=True)))

    def initial_state(self, model: NeuralSDE, batch: Moments) -> Float[Array, "num 2"]:
        """The first point, which all paths share."""
        del model
        return jnp.broadcast_to(jnp.asarray(START, batch.mean.dtype), (len(batch.mean), 2))


Errors = Float[Array, "num parts times 2"]


def _errors(
    draws: Float[Array, "num parts draws times 2"], batch: Moments
) -> tuple[Errors, Errors]:
    """The errors of the means and of the variances of some draws, part by part."""
    means, variances = jnp.mean(draws, axis=2), jnp.var(draws, axis=2, ddof=1)
    return means - batch.mean[:, None], variances - batch.variance[:, None]
