"""Flow matching as a task."""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from taynode import lab
from taynode.lab.config import RegularizerConfig
from taynode.lab.tasks.flow_matching import MatchedRings, MatchedTwoMoons
from taynode.models import Solve


def test_densities_are_those_of_the_tasks_in_the_plane():
    names = [MatchedTwoMoons, MatchedRings]
    assert [task().density for task in names] == ["two_moons", "rings"]


@pytest.mark.slow
@pytest.mark.parametrize("regularizer", ["none", "r2"])
def test_a_run_trains_without_solves_and_counts_those_of_samples(regularizer, tmp_path):
    task = lab.find_task("flow-matching")
    task.scale = "smoke"
    settings = dataclasses.replace(
        task.defaults("smoke"),
        regularizer=RegularizerConfig(regularizer, 0.1 if regularizer == "r2" else 0.0),
        num_evaluations=1,
        eval_samples=4,
        final_samples=4,
    )
    row = lab.train(settings, task, tmp_path / "run").rows()[-1]
    assert row["training_nfe"] == row["step"] == 10
    assert row["test_nfe"] >= 13
    assert np.isfinite([row["test_loss"], row["test_nll"], row["r2"]]).all()


def test_loss_in_evaluations_is_that_of_training():
    task = MatchedTwoMoons()
    task.scale = "smoke"
    model = task.model(jr.key(0))
    batch = jnp.asarray(task.load().test[:8], model.dtype)
    outcome = task.loss(model, batch, Solve(num_steps=2), jr.key(1))
    loss_key = jr.split(jr.key(1), 3)[0]
    training = task.training_loss(model, batch, Solve(), loss_key, 0.0)
    np.testing.assert_allclose(outcome.loss, training.loss)
    assert training.solution.stats["nfe"] == 1
    assert outcome.solution.stats["nfe"] == 13
