"""The training loop: what it records, and what it survives."""

import dataclasses
import errno
import json
import os
import signal

import jax.tree_util as jtu
import numpy as np
import pytest

from taynode import lab
from taynode.lab import Interrupted, TrainingFailed
from taynode.lab.config import ConfigError, OptimizerConfig, RegularizerConfig, SolveConfig
from taynode.lab.training.build import make_solve
from taynode.lab.training.evaluate import Evaluator
from taynode.lab.training.running import data_order, Training

from .tiny_task import Lost, Tiny, WithValidation


TIMES = {"train_seconds", "seconds_per_step", "compile_seconds", "forward_seconds"}


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """The task is found as a user's own would be: next to where the command is called."""
    monkeypatch.chdir(os.path.dirname(__file__))


# It compiles quickly.
EULER = SolveConfig(solver="euler", steps=2)


def smoke(**changes):
    """A penalty that draws random numbers in each step."""
    return dataclasses.replace(Tiny().defaults("smoke"), evaluation=EULER, **changes)


def cheap(task, **changes):
    """The same, where the penalty does not matter."""
    defaults = dataclasses.replace(task.defaults("smoke"), regularizer=RegularizerConfig())
    return dataclasses.replace(defaults, training=EULER, evaluation=EULER, **changes)


def without_times(rows):
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]


def arrays_of(run):
    return [np.asarray(x) for x in jtu.tree_leaves(lab.load(run, task=Tiny).model)]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(arrays_of(one), arrays_of(other), strict=True))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run from beginning to end, and what was told on the way."""
    path = tmp_path_factory.mktemp("runs") / "finished"
    told = []
    lab.train(smoke(), Tiny(), path, on_progress=told.append)
    return path, told


def test_run_is_plain_files(finished):
    path, _ = finished
    config = json.loads((path / "config.json").read_text())
    assert config["regularizer"]["name"] == "r2"
    assert json.loads((path / "environment.json").read_text())["jax"]
    assert json.loads((path / "status.json").read_text())["state"] == "finished"
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 8, 16]
    assert [row["epoch"] for row in rows] == [0.0, 2.0, 4.0]
    assert not list(path.rglob("*.tmp*"))
    assert not list(path.rglob("*.pkl"))


def test_row_has_everything(finished):
    path, _ = finished
    row = lab.RunDirectory(path).rows()[-1]
    for split, count in (("train", 64), ("test", 20)):
        assert row[f"{split}_num_samples"] == count
        assert row[f"{split}_num_failed"] == 0
        assert row[f"{split}_loss"] > 0
        quantiles = [row[f"{split}_nfe_q{q}"] for q in ("05", "50", "95")]
        assert quantiles == sorted(quantiles)
        assert quantiles[-1] <= row[f"{split}_nfe_max"]
        assert row[f"{split}_nfe_std"] >= 0
    assert row["penalty"] == row["r2"] > 0
    assert row["weight"] == pytest.approx(1e-3)
    assert {"r3", "kinetic", "jacobian", *TIMES} <= row.keys()


def test_what_is_told(finished):
    _, told = finished
    assert told[0].step == 0
    assert told[-1].step == told[-1].num_steps == 16
    assert [p.step for p in told if p.row is not None] == [0, 8, 16]
    assert told[0].penalty is None
    assert all(p.penalty > 0 and p.nfe > 0 and p.seconds_per_step > 0 for p in told[1:])


def test_load_gives_model_and_settings_back(finished):
    path, _ = finished
    run = lab.load(path, task=Tiny)
    assert run.config == smoke()
    assert run.step == 16
    out, solution = run.model(run.data.test.inputs[:3])
    assert out.shape == (3, 1)
    assert solution.stats["nfe"] > 0


def test_order_of_data_is_a_permutation_of_its_own_each_epoch():
    first, second = (data_order(0, epoch, 100) for epoch in (0, 1))
    assert sorted(first) == sorted(second) == list(range(100))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, data_order(0, 0, 100))
    assert not np.array_equal(first, data_order(1, 0, 100))


def test_steps_see_the_order_of_their_epoch():
    """Also where the orders of many epochs go to the device together."""
    task = lab.find_task("toy")
    training = Training(dataclasses.replace(task.defaults("smoke"), seed=3), task)
    assert training.epochs_per_order > 1
    size, each = training.config.batch_size, training.steps_per_epoch
    for step in (0, 1, each, 7 * each + 2, 40 * each - 1, 3 * training.epochs_per_order * each):
        epoch, place = divmod(step, each)
        expected = data_order(3, epoch, training.num_samples)[place * size : (place + 1) * size]
        np.testing.assert_array_equal(training.indices(step), expected)


def test_step_is_compiled_once():
    training = Training(cheap(Tiny()), Tiny())
    training.warm_up()
    training.advance(0, 3)
    training.advance(3, 1)
    assert training.compiled._cache_size() == 1


@pytest.mark.usefixtures("no_penalties")
def test_ctrl_c_and_a_full_disk_leave_checkpoints_to_go_on_from(finished, tmp_path, monkeypatch):
    stopped = tmp_path / "stopped"

    def interrupt(progress):
        if progress.step == 1:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match="step 1 of 16; go on with `--resume`"):
        lab.train(smoke(), Tiny(), stopped, on_progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    directory = lab.RunDirectory(stopped)
    assert directory.status()["state"] == "stopped"
    assert lab.load(stopped, task=Tiny).step == 1
    with pytest.raises(ConfigError, match="--resume"):
        lab.train(smoke(), Tiny(), stopped)

    def full(progress):
        def fail(*args):
            raise OSError(errno.ENOSPC, "No space left on device")

        if progress.step == 8:
            patch.setattr(os, "fsync", fail)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left") as caught:
        lab.train(smoke(), Tiny(), stopped, on_progress=full, resume=True)
    assert caught.value.filename == str(stopped / "metrics.jsonl")
    assert lab.load(stopped, task=Tiny).step == 8
    lab.train(smoke(), Tiny(), stopped, resume=True)
    assert directory.status()["state"] == "finished"
    path, _ = finished
    assert same(stopped, path)
    rows, expected = (without_times(lab.RunDirectory(p).rows()) for p in (stopped, path))
    assert rows == [{k: row[k] for k in rows[0]} for row in expected]


@pytest.mark.usefixtures("no_penalties")
def test_diverging_run_keeps_its_last_good_checkpoint(tmp_path):
    path = tmp_path / "run"
    settings = cheap(Tiny(), optimizer=OptimizerConfig("sgd", 1e12))
    with pytest.raises(TrainingFailed, match=r"Step \d+ of 16 failed on the batch .*checkpoint"):
        lab.train(settings, Tiny(), path)
    status = lab.RunDirectory(path).status()
    assert status["state"] == "failed"
    assert status["step"] >= 1
    run = lab.load(path, task=Tiny)
    assert run.step < status["step"] + 1
    assert all(np.isfinite(x).all() for x in arrays_of(path))


class NotFinite(Tiny):
    """Its loss is finite, its gradient is not: the root of zero."""

    def loss(self, model, batch, solve, key):
        outcome = super().loss(model, batch, solve, key)
        return outcome._replace(loss=outcome.loss + (outcome.loss * 0.0) ** 0.5)


@pytest.mark.usefixtures("no_penalties")
def test_gradient_that_is_not_finite_stops_before_it_is_saved(tmp_path):
    with pytest.raises(TrainingFailed, match=r"Step 0 .* gradient is not finite"):
        lab.train(cheap(NotFinite()), NotFinite(), tmp_path / "run")
    assert lab.load(tmp_path / "run", task=Tiny).step == 0


@pytest.mark.usefixtures("no_penalties")
def test_failed_solve_is_named(tmp_path):
    strict = SolveConfig(rtol=1e-6, atol=1e-6, max_steps=1)
    settings = dataclasses.replace(cheap(Tiny()), training=strict)
    with pytest.raises(TrainingFailed, match=r"the solver gave up after .* evaluations"):
        lab.train(settings, Tiny(), tmp_path / "run")


def test_checkpoint_of_other_settings_is_refused(finished, tmp_path):
    path, _ = finished
    with pytest.raises(lab.CheckpointError, match="`seed` is 3 here and 0 there"):
        lab.train(smoke(seed=3), Tiny(), path, resume=True)


def test_batch_larger_than_the_data_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"`batch_size` must be at most 64, .* got 100"):
        lab.train(smoke(batch_size=100), Tiny(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


WAYS = {
    "per sample, augmented": {
        "joint": False,
        "regularizer": RegularizerConfig("r3", 1e-3, quadrature="augmented"),
    },
    "grid, rnode, own times": {
        "training": SolveConfig(solver="rk4", steps=3),
        "regularizer": RegularizerConfig("rnode", 1e-3, per_row=True, schedule="taper"),
    },
    "backsolve, backward": {
        "training": SolveConfig(rtol=1e-3, atol=1e-3, adjoint="backsolve"),
        "regularizer": RegularizerConfig("r2", 1e-3, quadrature="backward"),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_ways_of_training(tmp_path, way):
    settings = smoke(epochs=1, num_evaluations=1, **WAYS[way])
    told = []
    rows = lab.train(settings, Tiny(), tmp_path / "run", on_progress=told.append).rows()
    assert np.isfinite(rows[-1]["test_loss"])
    assert rows[-1]["penalty"] > 0
    is_known = settings.regularizer.quadrature != "backward"
    assert (told[-1].penalty is not None) == is_known


class Noting(WithValidation):
    """Notes the tolerances that losses are solved with."""

    def __init__(self):
        self.tolerances = []

    def loss(self, model, batch, solve, key):
        self.tolerances.append(float(solve.stepsize_controller.rtol))
        return super().loss(model, batch, solve, key)


# On MINIBOONE it took four times as long as training.
@pytest.mark.usefixtures("no_penalties")
@pytest.mark.parametrize(("asked", "of_validation"), [(1e-6, 1e-5), (1e-3, 1e-3)])
def test_validation_is_no_more_accurate_than_it_needs_to_be(monkeypatch, asked, of_validation):
    monkeypatch.setattr(Evaluator, "forward_seconds", lambda *args, **options: 0.0)
    adaptive = SolveConfig(solver="bosh3", rtol=asked, atol=asked, max_steps=64)
    task = Noting()
    training = Training(dataclasses.replace(cheap(task), evaluation=adaptive), task)
    training.row(0)
    # It comes first. The other one is compiled anew only if it is another one.
    assert task.tolerances == list(dict.fromkeys([of_validation, asked]))


@pytest.mark.usefixtures("no_penalties")
def test_best_model_on_the_validation_set_is_kept(tmp_path):
    """Not the last one is tested, but the best. It is loaded without any data."""
    settings = cheap(
        WithValidation(), epochs=40, num_evaluations=10, optimizer=OptimizerConfig("adam", 1e-2)
    )
    path = tmp_path / "run"

    def interrupt(progress):
        if progress.step == 144:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        lab.train(settings, WithValidation(), path, on_progress=interrupt)
    lab.train(settings, WithValidation(), path, resume=True)
    rows = lab.RunDirectory(path).rows()
    losses = [row["valid_loss"] for row in rows]
    best = int(np.argmin(losses))
    assert 0 < best < len(rows) - 1, losses
    assert rows[-2]["train_loss"] < 0.2 * rows[0]["train_loss"]
    assert rows[-1]["best_step"] == rows[best]["step"]
    # They are the same points.
    assert rows[-1]["test_loss"] == pytest.approx(losses[best], rel=1e-5)
    run = lab.load(path, task=Lost)
    inputs, labels = WithValidation().load().test
    out, _ = run.model(inputs, make_solve(settings.evaluation))
    assert np.mean((out - labels) ** 2) == pytest.approx(losses[best], rel=1e-2)
