"""PhysioNet 2012 with what it was collected for: who dies in hospital."""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..models.latent import LatentODE
from ..models.recognition import TwoLayers
from .base import Data, Outcome
from .physionet import NUM_CHANNELS, Physionet


class LabeledSeries(NamedTuple):
    """Series along the first axis; labels are -1 where they are not known."""

    values: Any
    mask: Any
    labels: Any


class Mortality(Physionet):
    """The latent ODE of PhysioNet, and a head that is trained together with it."""

    name: ClassVar[str] = "physionet-mortality"
    description: ClassVar[str] = "PhysioNet 2012, with in-hospital mortality from the latent state"
    # Of a patient's cross-entropy, next to a loss per observed value.
    head_weight: float = 1.0
    width: int = 50

    def load(self) -> Data:
        """The patients of `physionet`, with labels."""
        split = self.load_split()
        parts = (LabeledSeries(x.values, x.mask, x.labels) for x in (split.train, split.test))
        return Data(*parts)

    def model(self, key: Any) -> LatentODE:
        """The latent ODE of `physionet`, with a head."""
        key, head_key = jr.split(key)
        head = TwoLayers(20, self.width, 1, key=head_key)
        return LatentODE(NUM_CHANNELS, head=head, key=key)

    def extend(self, outcome: Outcome, model: Any, batch: Any, found: Any) -> Outcome:
        """The cross-entropy of patients whose fate is known; the risk that each is said to run."""
        logits = model.classify(found.mean)[..., 0]
        is_known = batch.labels >= 0
        died = (batch.labels > 0).astype(logits.dtype)
        entropy = jax.nn.softplus(logits) - died * logits
        num_known = jnp.maximum(jnp.sum(is_known.astype(logits.dtype)), 1.0)
        loss = jnp.sum(jnp.where(is_known, entropy, 0.0)) / num_known
        mean = lambda x: jnp.mean(x.astype(logits.dtype))
        metrics = {
            "risk": mean(jax.nn.sigmoid(logits)),
            "died": mean(jnp.where(is_known, died, jnp.nan)),
        }
        return outcome._replace(
            loss=outcome.loss + self.head_weight * loss, metrics=outcome.metrics | metrics
        )

    def summaries(self, samples: Any) -> dict[str, float]:
        """How well risks tell those who died: each patient counts as one, whatever was observed."""
        risk, died = samples.metrics["risk"], samples.metrics["died"]
        is_known = np.isfinite(died)
        risk, died = risk[is_known].astype(float), died[is_known] > 0.5
        return {
            "risk": float(np.mean(risk)) if len(risk) else float("nan"),
            "died": float(np.mean(died)) if len(died) else float("nan"),
            "auc": area_under_curve(risk, died),
        }


def area_under_curve(scores: np.ndarray, labels: np.ndarray) -> float:
    """The chance that one of the labeled has a higher score than one of the others."""
    above, below = scores[labels], np.sort(scores[~labels])
    if not len(above) or not len(below):
        return float("nan")
    # Ties count half.
    lower = np.searchsorted(below, above, side="left")
    same = np.searchsorted(below, above, side="right") - lower
    return float(np.mean((lower + 0.5 * same) / len(below)))
