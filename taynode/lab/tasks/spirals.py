"""Spirals at irregular times, classified by a neural controlled differential equation."""

from typing import Any, ClassVar

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from ..._types import VectorField
from ...models import NeuralCDE
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.spirals import spirals
from .base import Batch, Data
from .classification import AbstractClassification


NOISE = 0.1


class AbstractControlled(AbstractClassification):
    """Classification by a `NeuralCDE`, for inputs that `as_controls` makes."""

    def initial_state(self, model: NeuralCDE, batch: Batch) -> Float[Array, "num size"]:
        """A linear map of the first values."""
        return model.initial(jax.vmap(lambda control: control.evaluate(control.t0))(batch.inputs))

    def arguments(self, batch: Batch) -> Any:
        """The controls."""
        return batch.inputs

    def vector_field(self, model: NeuralCDE) -> VectorField:
        """That of one sample, whose argument is its control."""
        return lambda t, y, control: model.vector_field.matrix(y) @ control.derivative(t)


class Spirals(AbstractControlled):
    """Series of 100 irregular times with noise. They need no download."""

    name: ClassVar[str] = "spirals"
    description: ClassVar[str] = "spirals at irregular times by a neural CDE, generated"

    def defaults(self, scale: str) -> TrainConfig:
        """Cosine-decayed Adam; Tsit5 at a tolerance of 1e-3, as in diffrax's example."""
        smoke = scale == "smoke"
        return self.settings(
            scale,
            SolveConfig("tsit5", rtol=1e-3, atol=1e-3),
            epochs={"smoke": 1, "laptop": 30, "paper": 200}[scale],
            batch_size=64 if smoke else 32,
            optimizer=OptimizerConfig("adam", 1e-2, schedule="cosine"),
            num_evaluations=1 if smoke else 5,
            eval_samples=20 if smoke else 100,
        )

    def load(self) -> Data:
        """Training and test series as controls: cubic Hermite with backward differences."""
        num_train = {"smoke": 128, "laptop": 512, "paper": 2048}[self.scale]
        train = spirals(num_train, seed=0, noise=NOISE)
        test = spirals(256, seed=1, noise=NOISE)
        return Data(*(as_controls(x.times, x.values, x.labels) for x in (train, test)))

    def model(self, key: PRNGKeyArray) -> NeuralCDE:
        """A state of size 8, as in diffrax's example."""
        width = {"smoke": 8, "laptop": 32, "paper": 128}[self.scale]
        return NeuralCDE(3, 8, width, 2, key=key)


def as_controls(times: ArrayLike, values: ArrayLike, labels: np.ndarray) -> Batch:
    """Series with shared times as controls: cubic Hermite with backward differences."""
    times = jnp.asarray(times)

    def control(values):
        coefficients = dfx.backward_hermite_coefficients(times, values)
        return dfx.CubicInterpolation(times, coefficients)

    controls = jax.jit(jax.vmap(control))(jnp.asarray(values))
    return Batch(jtu.tree_map(np.asarray, controls), labels)
