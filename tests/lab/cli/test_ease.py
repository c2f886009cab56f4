"""`taynode ease` as a user meets it."""

import contextlib
import dataclasses
import json
from pathlib import Path

import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

import taynode as tn
from taynode import lab
from taynode.easing import Point
from taynode.lab.cli import main
from taynode.lab.cli.display import Display
from taynode.lab.training.easing import EaseConfig, valid_split
from taynode.lab.training.parameters import write_parameters
from taynode.lab.training.running import new_model

from ..training.tiny_task import Tiny, WithValidation


HERE = Path(__file__).parents[1] / "training"
STEPS = 60


def ease(run, *words):
    """The exit code."""
    words = ["ease", run, "--task", "tiny_task:Tiny", "--steps", STEPS, "--samples", 20, *words]
    # Where the tiny task is.
    with contextlib.chdir(HERE), pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    return stop.value.code or 0


def front_of(path):
    return json.loads((path / "front.json").read_text())


def write_model(file, seed):
    config = dataclasses.replace(Tiny().defaults("smoke"), seed=seed)
    write_parameters(file, new_model(config, Tiny(), jr.key(seed)), config, 16)
    return file


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model, whose training does not matter."""
    return write_model(tmp_path_factory.mktemp("runs") / "run.eqx", 0)


@pytest.fixture(scope="module")
def eased(run):
    """Models from it to cheaper ones, in the default directory."""
    assert ease(run, "--json") == 0
    return run.with_name("run-eased")


@pytest.mark.slow
def test_each_model_is_a_file(run, eased):
    front = front_of(eased)
    given, *others = front["points"]
    assert (front["run"], front["task"], front["split"]) == (str(run), "tiny_task:Tiny", "train")
    assert (given["kind"], given["file"], given["step"]) == ("given", None, 0)
    assert {p["kind"] for p in others} == {"scouted", "refitted"}
    assert others[-1]["step"] == STEPS
    models = [lab.load(eased / point["file"], task=Tiny) for point in others]
    for point, loaded in zip(others, models, strict=True):
        # Those of the training before are counted.
        assert loaded.step == 16 + point["step"]
        penalized = loaded.config.regularizer
        assert (penalized.name, penalized.weight) == ("r3", point["weight"])
    # The last of them is what the front says it is.
    loaded = models[-1]
    evaluator = lab.Evaluator(Tiny(), loaded.config.evaluation)
    report = evaluator.report(loaded.model, loaded.data.test, split="test")
    assert (report["loss"], report["nfe"]) == (others[-1]["test_loss"], others[-1]["test_nfe"])
    # Training samples decide, each of them alone and with the solver of evaluations.
    few = jtu.tree_map(lambda x: x[:20], loaded.data.train)
    samples = evaluator.samples(loaded.model, few, split="train")
    np.testing.assert_allclose(others[-1]["nfe"], samples.nfe.mean(), rtol=1e-6)
    np.testing.assert_allclose(others[-1]["loss"], samples.loss.mean(), rtol=1e-5)


def test_page_has_every_model(run, eased):
    page = (eased / "report.html").read_text()
    assert str(run) in page
    for point in front_of(eased)["points"][1:]:
        assert f"taynode evaluate {eased / point['file']} --task tiny_task:Tiny" in page


@pytest.mark.slow
def test_the_same_command_continues(run, eased, tmp_path, capsys, monkeypatch):
    def stop(display, progress):
        # In a refit: Ctrl-C, at the worst moment.
        if progress.step >= 40:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Display, "show_easing", stop)
        assert ease(run, "--out", tmp_path / "out") == 130
    assert "The same command continues" in capsys.readouterr().err
    assert not (tmp_path / "out" / "front.json").exists()
    seen = []
    monkeypatch.setattr(Display, "show_easing", lambda _, progress: seen.append(progress.step))
    assert ease(run, "--out", tmp_path / "out", "--json") == 0
    assert min(seen) > 20
    assert front_of(tmp_path / "out") == front_of(eased)
    for point in front_of(eased)["points"][1:]:
        one, other = ((path / point["file"]).read_bytes() for path in (tmp_path / "out", eased))
        assert one == other


def test_a_budget_above_need(run, tmp_path, capsys):
    assert ease(run, "--budget", 100, "--out", tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert "given, chosen" in out
    assert "nothing was trained" in out
    assert front_of(tmp_path / "out")["chosen"] == 0


def test_the_model_that_is_asked_for():
    numbers = [(40.0, 1.0), (30.0, 1.05), (20.0, 1.5)]
    points = [Point("refitted", nfe, loss, 0.0, 0, None) for nfe, loss in numbers]
    front = tn.Front(tuple(points))
    asked = {
        EaseConfig(): None,
        EaseConfig(budget=10.0): None,
        EaseConfig(budget=25.0): points[2],
        EaseConfig(within="10%"): points[1],
        EaseConfig(within="0.6"): points[2],
        EaseConfig(within="1%"): points[0],
    }
    for config, point in asked.items():
        assert config.choose(front) is point


def test_validation_data_decides_if_there_is_any(run):
    assert valid_split(lab.load(run, task=Tiny)) == "train"
    assert valid_split(lab.load(run, task=WithValidation)) == "valid"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "30", "--within", "1%"], "Give one of `budget` and `within`"),
        (["--budget", "0"], "`budget` must be positive, got 0"),
        (["--budget", "0.5"], "`budget` must be a number of evaluations, not a share of them"),
        (["--within", "some"], "`within` must be a share of the loss, such as 1%"),
        (["--regularizer", "r33"], "`regularizer` 'r33' is not known: did you mean 'r3'"),
        (["--regularizer", "r2"], "was begun with `regularizer` r3, got r2"),
        (["--out", HERE], "training holds other files"),
    ],
)
def test_what_cannot_be_is_said(words, message, run, eased, capsys):
    assert ease(run, *words) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_runs_are_told_apart(eased, tmp_path, capsys):
    assert ease(tmp_path / "missing") == 2
    assert "missing: there is no such directory or file" in capsys.readouterr().err
    before = front_of(eased)
    assert ease(write_model(tmp_path / "other.eqx", 1), "--out", eased) == 2
    assert "belongs to another run" in capsys.readouterr().err
    assert front_of(eased) == before
