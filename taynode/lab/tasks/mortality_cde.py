"""Deaths in hospital, predicted by a neural controlled differential equation."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from ...models import NeuralCDE, Solve
from ..config import OptimizerConfig, SolveConfig, TrainConfig
from ..data.errors import DataError
from ..data.physionet import load_physionet
from ..data.series import Series
from .base import Batch, Data, Evaluated, Outcome
from .mortality import area_under_curve
from .physionet import NUM_CHANNELS
from .spirals import AbstractControlled, as_controls


# A knot for each so many hours. Evaluations grow with the number of knots.
HOURS = 4


class MortalityCDE(AbstractControlled):
    """PhysioNet 2012: measurements of two days, and a prediction for each patient."""

    name: ClassVar[str] = "physionet-cde"
    description: ClassVar[str] = "PhysioNet 2012, in-hospital mortality by a neural CDE"

    def defaults(self, scale: str) -> TrainConfig:
        """Cosine-decayed Adam; Tsit5 at a tolerance of 1e-3."""
        smoke = scale == "smoke"
        return self.settings(
            scale,
            SolveConfig("tsit5", rtol=1e-3, atol=1e-3),
            epochs={"smoke": 1, "laptop": 10, "paper": 30}[scale],
            batch_size=50,
            optimizer=OptimizerConfig("adam", 2e-3, schedule="cosine", clip=1.0),
            num_evaluations=1 if smoke else 5,
            eval_samples=50 if smoke else 200,
            final_samples=10_000 if scale == "paper" else 800,
        )

    def load(self) -> Data:
        """All patients at `paper`, half of them at `laptop`, and 250 at `smoke`."""
        num = {"smoke": 250, "laptop": 4000, "paper": None}[self.scale]
        split = load_physionet(seed=0, num_patients=num)
        return Data(*(_known(part) for part in (split.train, split.test)))

    def model(self, key: PRNGKeyArray) -> NeuralCDE:
        """A state of size 16."""
        width = {"smoke": 8, "laptop": 32, "paper": 64}[self.scale]
        return NeuralCDE(1 + 2 * NUM_CHANNELS, 16, width, 2, key=key)

    def loss(self, model: NeuralCDE, batch: Batch, solve: Solve, key: PRNGKeyArray) -> Outcome:
        """The cross-entropy, and the predicted risk."""
        logits, solution = model(batch.inputs, solve, key=key)
        score = logits[:, 1] - logits[:, 0]
        died = batch.labels.astype(score.dtype)
        entropy = jax.nn.softplus(score) - died * score
        metrics = {"risk": jnp.mean(jax.nn.sigmoid(score)), "died": jnp.mean(died)}
        return Outcome(jnp.mean(entropy), solution, metrics)

    def summaries(self, samples: Evaluated) -> dict[str, float]:
        """The area under the curve of the predicted risks."""
        risk, died = (np.asarray(samples.metrics[name]) for name in ("risk", "died"))
        return {"auc": area_under_curve(risk, died > 0.5)}


def channels_of(series: Series) -> Float[np.ndarray, "num knots channels"]:
    """Time, the last value of each measurement, and how often it was observed, at the knots.

    Nothing of the future is in them. Counts are in units of the number of times.
    """
    count = np.cumsum(series.mask, axis=1)
    # The index of the last observation; before the first one, the value is zero.
    places = np.where(series.mask, np.arange(len(series.times))[:, None], -1)
    last = np.maximum.accumulate(places, axis=1)
    values = np.take_along_axis(series.values, np.maximum(last, 0), axis=1)
    values = np.where(last >= 0, values, 0.0)
    time = np.broadcast_to(series.times[:, None], (*values.shape[:2], 1))
    every = np.concatenate([time, values, count / len(series.times)], axis=-1)
    return every[:, ::HOURS].astype(np.float32)


def _known(series: Series) -> Batch:
    """The patients with known labels."""
    known = series.labels >= 0
    if not known.any():
        raise DataError(
            "physionet-cde needs to know who died in hospital: got no Outcomes-a.txt and "
            "Outcomes-b.txt. Put them next to the files of the patients."
        )
    values = channels_of(series)[known]
    return as_controls(series.times[::HOURS], values, series.labels[known])
