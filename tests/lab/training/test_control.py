"""Training whose weight follows measurements."""

import dataclasses
import json
import signal
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from taynode import lab
from taynode.lab import Interrupted
from taynode.lab.cli import main
from taynode.lab.config import RegularizerConfig, SolveConfig
from taynode.lab.training.build import in_double

from ..rows import without_penalties
from .test_loop import arrays_of, without_times
from .tiny_task import Tiny


def settings(**regularizer):
    """Evaluations have three steps and three evaluations, training has two."""
    control = RegularizerConfig("r2", **regularizer)
    evaluation = SolveConfig(solver="euler", steps=3)
    defaults = dataclasses.replace(Tiny().defaults("smoke"), evaluation=evaluation)
    return dataclasses.replace(defaults, epochs=20, regularizer=control)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run whose budget cannot be reached, so the weight rises."""
    path = tmp_path_factory.mktemp("runs") / "budget"
    with without_penalties():
        lab.train(settings(budget=2.5), Tiny(), path)
    return path


def test_evaluations_are_measured_and_the_weight_follows_them(finished):
    rows = lab.RunDirectory(finished).rows()
    assert rows[0]["control"] == "unmeasured"
    assert rows[0]["course"] == []
    steps, weights, nfe = zip(*(entry for row in rows for entry in row["course"]), strict=True)
    # A measurement each ten steps; 20 epochs have 80.
    assert steps == tuple(range(9, 80, 10))
    assert weights[0] == 0
    assert list(weights) == sorted(weights)
    assert rows[-1]["weight"] > weights[1] > 0
    # Those of evaluations, not those of training.
    assert set(nfe) == {3.0}
    assert "budget of 2.5" in rows[-1]["control_message"]


@pytest.mark.usefixtures("no_penalties")
def test_a_run_that_is_stopped_and_resumed_has_the_same_weights(finished, tmp_path, monkeypatch):
    # Between two evaluations and two measurements.
    monkeypatch.setattr("taynode.lab.training.loop.MAX_BLOCK", 1)
    stop = lambda progress: signal.raise_signal(signal.SIGINT) if progress.step == 25 else None
    with pytest.raises(Interrupted):
        lab.train(settings(budget=2.5), Tiny(), tmp_path / "run", on_progress=stop)
    lab.train(settings(budget=2.5), Tiny(), tmp_path / "run", resume=True)
    for one, other in zip(arrays_of(tmp_path / "run"), arrays_of(finished), strict=True):
        assert one.tobytes() == other.tobytes()
    resumed, whole = (lab.RunDirectory(p).rows() for p in (tmp_path / "run", finished))
    assert without_times(resumed) == without_times(whole)


@pytest.mark.usefixtures("no_penalties")
def test_a_budget_decides_the_strength_of_weight_decay(finished, tmp_path):
    penalized = RegularizerConfig("decay", budget=2.5)
    config = dataclasses.replace(settings(budget=2.5), regularizer=penalized)
    rows = lab.train(config, Tiny(), tmp_path / "run").rows()
    assert rows[-1]["weight"] > 0
    # It keeps parameters small: those of the other run, with the same keys, are larger.
    squares = lambda run: sum((x**2).sum() for x in arrays_of(run))
    assert squares(tmp_path / "run") < squares(finished)


@pytest.mark.slow
@pytest.mark.usefixtures("no_penalties")
def test_a_loss_is_allowed(tmp_path, monkeypatch):
    """The reference is so large that the weight may rise, and it is recorded."""
    monkeypatch.chdir(Path(__file__).parent)
    command = ["train", "tiny_task:Tiny", "--scale", "smoke", "--epochs", "10", "--json"]
    command += ["--set.evaluation.solver", "euler", "--set.evaluation.steps", "3"]
    plain = tmp_path / "plain"
    row = {"step": 0, "train_loss": 1e3}
    lab.RunDirectory(plain).create(settings())
    for step in (0, 40):
        lab.RunDirectory(plain).append(row | {"step": step})
    lab.RunDirectory(plain).set_status("finished")
    more = ["--within", "1%", "--reference", str(plain), "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit) as stop:
        main([*command, *more])
    assert not stop.value.code
    config = json.loads((tmp_path / "run" / "config.json").read_text())["regularizer"]
    assert (config["within"], config["reference"]) == ("1%", [1e3, 1e3])
    last = lab.RunDirectory(tmp_path / "run").rows()[-1]
    assert last["weight"] > 0
    assert "1010" in last["control_message"]


def test_models_have_functions_in_them_that_have_no_precision():
    # BUG, fixed: `jnp.tanh` was asked for its type.
    single = jnp.ones(2, jnp.float32), np.ones(2, np.float32), jnp.arange(2), jnp.tanh
    *arrays, function = in_double(single)
    assert [x.dtype for x in arrays] == [jnp.float64, jnp.float64, single[2].dtype]
    assert function is jnp.tanh


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "0"], "`budget` must be positive, got 0"),
        (["--budget", "30", "--weight", "1"], "Give one of `weight` and `budget`"),
        (["--budget", "30", "--regularizer", "none"], "`regularizer` none cannot keep a budget"),
        (["--budget", "30", "--quadrature", "backward"], "the quadrature backward"),
        (["--within", "1 percent"], "`within` must be a share of the loss, such as 1%"),
        (["--within", "1%"], "`within` needs the losses of an unregularized run"),
        (["--within", "1%", "--reference", "."], "is not a run"),
        (["--price", "0.01", "--weight", "1"], "`price` is the weight of the regularizer nfe"),
        (["--regularizer", "r3", "--weight", "0"], "needs a `--budget`, or a `--weight`"),
    ],
)
def test_what_cannot_be_is_said(words, message, capsys, monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)
    with pytest.raises(SystemExit) as stop:
        main(["train", "tiny_task:Tiny", "--scale", "smoke", *words])
    assert stop.value.code
    assert message in " ".join(capsys.readouterr().err.split())
