"""Stochastic tasks: the loss is least for the known law, and runs train."""

import dataclasses

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from taynode import lab
from taynode.lab.config import RegularizerConfig
from taynode.lab.data.rotations import NOISE, RATE, TURN
from taynode.models import DiagonalNoise, NeuralSDE, Solve


def exact(noise=1.0, turn=1.0):
    """The equation of the rotating data, with its noise and its turn scaled."""
    drift = lambda t, y, args: -RATE * y + turn * TURN * jnp.stack([-y[..., 1], y[..., 0]], axis=-1)
    diffusion = DiagonalNoise(lambda t, y, args: jnp.full(y.shape, noise * NOISE), None)
    return NeuralSDE(2, 2, drift=drift, diffusion=diffusion, key=jr.key(0))


@pytest.mark.slow
def test_the_loss_is_least_for_the_law():
    task = lab.find_task("sde-rotation")
    task.scale = "smoke"
    data = jnp.asarray(task.load().test, float)
    solve = Solve(dfx.ShARK(), num_steps=64)
    loss = eqx.filter_jit(lambda model: task.loss(model, data, solve, jr.key(1)))
    true, *others = [loss(exact(*x)) for x in ((1.0, 1.0), (1.4, 1.0), (0.6, 1.0), (1.0, 1.1))]
    np.testing.assert_allclose(true.metrics["variance"], 1.0, atol=0.03)
    np.testing.assert_allclose(true.metrics["mean_error"], 0.0, atol=2e-3)
    assert min(float(x.loss) for x in others) > true.loss
    np.testing.assert_allclose(others[0].metrics["variance"], 1.4**2, rtol=0.03)
    assert others[2].metrics["mean_error"] > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "name", "quadrature"),
    [
        ("sde-rotation", "error", "steps"),
        ("sde", "diffusion", "sampled"),
        ("sde", "r2", "sampled"),
        ("sde-spiral", "error", "steps"),
        ("digits-sde", "error", "steps"),
    ],
)
def test_a_run_trains(which, name, quadrature, tmp_path):
    task = lab.find_task(which)
    task.scale = "smoke"
    settings = dataclasses.replace(
        task.defaults("smoke"),
        regularizer=RegularizerConfig(name, 0.1, quadrature=quadrature),
        eval_samples=4,
        final_samples=4,
    )
    row = lab.train(settings, task, tmp_path / "run").rows()[-1]
    assert row["test_nfe"] > 9
    assert np.isfinite([row["test_loss"], row["r2"]]).all()
