"""The head that tells who dies in hospital."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from taynode.lab import find_task
from taynode.lab.tasks.base import Evaluated, Outcome
from taynode.lab.tasks.mortality import area_under_curve, LabeledSeries
from taynode.models import LatentODE, Reconstruction, TwoLayers


def test_area_under_the_curve_with_ties():
    numbers = np.random.RandomState(0)
    scores, labels = numbers.randint(0, 20, 200) / 20, numbers.rand(200) < 0.3
    assert area_under_curve(scores, labels) == pytest.approx(roc_auc_score(labels, scores))
    assert np.isnan(area_under_curve(scores, np.zeros(200, bool)))


def test_unknown_labels_do_not_count():
    key = jr.key(0)
    model = LatentODE(3, 4, head=TwoLayers(4, 5, 1, key=key), key=key)
    mean = jr.normal(key, (6, 4))
    labels = jnp.array([0, 1, -1, 1, 0, -1])
    batch = LabeledSeries(None, None, labels)
    plain = Outcome(jnp.array(2.0), None, {"mse": jnp.array(0.5)}, jnp.array(30.0))
    task = find_task("physionet-mortality")
    task.values_per_patient = 5.0
    outcome = task.extend(plain, model, batch, Reconstruction(None, None, None, mean, None, None))
    risk = np.asarray(1 / (1 + jnp.exp(-model.classify(mean)[:, 0])))
    known = np.array([0, 1, 3, 4])
    expected = log_loss([0, 1, 1, 0], risk[known])
    # Per patient, also of those without labels.
    assert outcome.loss - plain.loss == pytest.approx(expected * 4 / 6, rel=1e-6)
    assert (outcome.weight, outcome.metrics["mse"]) == (30.0, 0.5)
    assert outcome.metrics["bound"] == plain.loss


def test_each_patient_counts_as_one():
    died = np.array([1.0, 0.0, np.nan, 0.0])
    entropy = np.array([0.1, 0.2, np.nan, 0.3])
    metrics = {"risk": np.array([0.9, 0.1, 0.5, 0.2]), "died": died, "cross_entropy": entropy}
    samples = Evaluated(None, metrics, None, None, None, np.array([1.0, 100.0, 3.0, 1.0]))
    told = find_task("physionet-mortality").summaries(samples)
    assert told == {
        "risk": pytest.approx(0.4),
        "died": pytest.approx(1 / 3),
        "cross_entropy": pytest.approx(0.2),
        "auc": 1.0,
    }


def test_a_model_without_a_head_says_so():
    with pytest.raises(ValueError, match="`head`"):
        LatentODE(3, 4, key=jr.key(0)).classify(jnp.zeros((1, 4)))
