"""The tasks with patients, from their files to an evaluation."""

import equinox as eqx
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

from taynode.lab import find_task
from taynode.lab.config import SolveConfig
from taynode.lab.data import DataError
from taynode.lab.training.evaluate import Evaluator
from taynode.models import Solve
from tests.lab.data.patients import as_patient, pack


NUM = 250


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Patients whose heart rate is their number; those of even numbers died."""
    folder = tmp_path / "physionet2012"
    folder.mkdir()
    monkeypatch.setenv("TAYNODE_DATA", str(tmp_path))
    for name, first in (("a", 100), ("b", 1000)):
        numbers = range(first, first + NUM // 2)
        files = {
            f"{i}.txt": as_patient(i, [f"01:00,HR,{i}", f"09:10,HR,{i}", "30:00,Lactate,2"])
            for i in numbers
        }
        pack(folder / f"set-{name}.zip", files)
        outcomes = "".join(f"{i},{1 - i % 2}\n" for i in numbers)
        (folder / f"Outcomes-{name}.txt").write_text(f"RecordID,In-hospital_death\n{outcomes}")
    return folder


def loaded(name):
    task = find_task(name)
    task.scale = "smoke"
    return task, task.load()


def test_labels_are_those_of_their_patients(folder):
    task, data = loaded("physionet-mortality")
    names, (low, high) = list(task.channel_names), task.channel_range
    rate = names.index("HR")
    for part in data.train, data.test:
        numbers = low[rate] + part.values[:, 1, rate] * (high[rate] - low[rate])
        np.testing.assert_array_equal(part.labels, 1 - np.round(numbers).astype(int) % 2)
    assert len(data.train.labels) == 4 * len(data.test.labels) == 200
    assert task.values_per_patient == 3


def in_double_precision(data):
    data = jtu.tree_map(lambda x: x[:20], data.test)
    return data._replace(values=np.asarray(data.values, float))


@pytest.mark.slow
def test_everything_can_be_told_of_patients(folder, monkeypatch):
    # As many as there are, so that all is compiled for one size.
    monkeypatch.setattr("taynode.lab.training.evaluate.EVAL_BATCH", 20)
    task, data = loaded("physionet-mortality")
    model, data = task.model(jr.key(0)), in_double_precision(data)
    evaluator = Evaluator(task, SolveConfig(rtol=1e-3, atol=1e-3))
    told = evaluator.report(model, data, split="test")
    errors = ("mse", "interpolation_mse", "extrapolation_mse")
    assert all(np.isfinite(told[error]) for error in errors)
    assert (told["num_samples"], told["num_failed"]) == (20, 0)
    assert told["died"] == np.mean(data.labels)
    assert 0 <= told["auc"] <= 1
    # What is timed is the one solve that the number of evaluations is of.
    timed = []
    plain = evaluator.plain
    evaluator.plain = lambda *args: timed.append(plain(*args)[0]) or timed[-1]
    assert evaluator.forward_seconds(model, data, split="test", repeats=1) > 0
    for samples in timed:
        assert not any("polation" in metric for metric in samples.metrics)
        assert np.mean(samples.nfe) == told["nfe"]


def test_loss_of_patients(folder):
    task, data = loaded("physionet-ode-rnn")
    model, data = task.model(jr.key(0)), in_double_precision(data)
    loss = eqx.filter_jit(lambda model, data: task.loss(model, data, Solve(), jr.key(0)))
    outcome = loss(model, data)
    assert np.isfinite(outcome.loss)
    assert outcome.weight == 3 * 20
    assert model.encoder.drift is not None


def test_mortality_needs_outcomes(folder):
    for name in "ab":
        (folder / f"Outcomes-{name}.txt").unlink()
    with pytest.raises(DataError, match=r"got no Outcomes-a.txt"):
        loaded("physionet-mortality")
    loaded("physionet")
