"""PhysioNet 2012 with the labels that it was collected for: deaths in hospital."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Bool, PRNGKeyArray, Shaped

from ...models.latent import LatentODE, Reconstruction
from ...models.recognition import TwoLayers
from ..data.errors import DataError
from .base import Data, Evaluated, Outcome
from .latent import LabeledSeries
from .physionet import LATENT_SIZE, NUM_CHANNELS, Physionet


class Mortality(Physionet):
    """The latent ODE of `physionet`, trained together with a head that predicts deaths."""

    name: ClassVar[str] = "physionet-mortality"
    description: ClassVar[str] = "PhysioNet 2012, with in-hospital mortality from the latent state"
    # The weight of a patient's cross-entropy, next to a loss per observed value.
    head_weight: float = 1.0
    width: int = 50
    # The mean number of observed values of a patient. Losses are per value, so that batches of any
    # size can be averaged. With this factor, the cross-entropy is per patient.
    values_per_patient: float

    def load(self) -> Data:
        """The patients of `physionet`, with labels."""
        split = self.load_split()
        if not all(np.any(part.labels >= 0) for part in (split.train, split.test)):
            raise DataError(
                f"{self.name} needs to know who died in hospital: got no Outcomes-a.txt and "
                "Outcomes-b.txt. Put them next to the files of the patients."
            )
        self.values_per_patient = float(split.train.mask.sum() / len(split.train))
        parts = (LabeledSeries(x.values, x.mask, x.labels) for x in (split.train, split.test))
        return Data(*parts)

    def model(self, key: PRNGKeyArray) -> LatentODE:
        """The latent ODE of `physionet`, with a head."""
        key, head_key = jr.split(key)
        head = TwoLayers(LATENT_SIZE, self.width, 1, key=head_key)
        return LatentODE(NUM_CHANNELS, head=head, augment=self.augment, key=key)

    def extend(
        self, outcome: Outcome, model: LatentODE, batch: LabeledSeries, found: Reconstruction
    ) -> Outcome:
        """Add the cross-entropy of patients with known labels, and the predicted risk of each."""
        logits = model.classify(found.mean)[..., 0]
        is_known = batch.labels >= 0
        died = (batch.labels > 0).astype(logits.dtype)
        entropy = jnp.where(is_known, jax.nn.softplus(logits) - died * logits, 0.0)
        factor = self.head_weight * self.values_per_patient / jnp.maximum(outcome.weight, 1.0)
        known = lambda x: jnp.mean(jnp.where(is_known, x, jnp.nan))
        metrics = {
            "bound": outcome.loss,
            "risk": jnp.mean(jax.nn.sigmoid(logits)),
            "died": known(died),
            "cross_entropy": known(entropy),
        }
        return outcome._replace(
            loss=outcome.loss + factor * jnp.sum(entropy), metrics=outcome.metrics | metrics
        )

    def summaries(self, samples: Evaluated) -> dict[str, float]:
        """The quality of the predicted risks. Each patient with a known label counts once."""
        is_known = np.isfinite(samples.metrics["died"])
        names = "risk", "died", "cross_entropy"
        values = {name: np.asarray(samples.metrics[name], float)[is_known] for name in names}
        return super().summaries(samples) | {
            **{name: float(np.mean(x)) if len(x) else float("nan") for name, x in values.items()},
            "auc": area_under_curve(values["risk"], values["died"] > 0.5),
        }


def area_under_curve(scores: Shaped[np.ndarray, "num"], labels: Bool[np.ndarray, "num"]) -> float:
    """The probability that a positive has a higher score than a negative."""
    above, below = scores[labels], np.sort(scores[~labels])
    if not len(above) or not len(below):
        return float("nan")
    # Ties count half.
    lower = np.searchsorted(below, above, side="left")
    same = np.searchsorted(below, above, side="right") - lower
    return float(np.mean((lower + 0.5 * same) / len(below)))
