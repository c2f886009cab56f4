"""What is measured of solvers on trained models."""

import dataclasses

import pytest

from taynode.lab.paper import solving
from taynode.lab.tasks.names import find_task
from taynode.lab.training.evaluate import Evaluator
from taynode.lab.training.loading import load
from taynode.lab.training.loop import train


# A classifier, flows with both kinds of divergence, and a latent path.
TASKS = "digits", "density2d", "miniboone", "oscillators"


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_evaluations_are_those_of_evaluations(tmp_path, monkeypatch, name):
    monkeypatch.setattr(solving, "NUM_SAMPLES", 8)
    task = find_task(name)
    config = task.defaults("smoke")
    loose = dataclasses.replace(config.evaluation, rtol=1e-4, atol=1e-4)
    config = dataclasses.replace(config, precision="float64", evaluation=loose)
    train(config, task, tmp_path / "run")
    found = solving.solving_of(tmp_path / "run")
    run = load(tmp_path / "run")
    report = Evaluator(run.task, loose, seed=config.seed).report(
        run.model, run.data.test, 8, split="test"
    )
    own = found["solvers"][loose.solver]
    if name != "oscillators":  # Those of a series draw several paths, and solve them together.
        assert own["nfe"] == pytest.approx(report["nfe"])
    assert 0 < own["error"] < 100
    assert 0 <= own["rejected"] < 1
    assert found["solvers"].keys() == {"dopri5", "tsit5", "bosh3"}
    assert found["cheapest"]["nfe"] > 0
