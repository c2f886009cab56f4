"""The loss of moments: that of the true law, and that of others."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

from taynode import lab
from taynode.lab.data.noisy_spiral import MATRIX, moments, NOISE, noisy_spirals
from taynode.lab.tasks.base import Unsolved
from taynode.lab.tasks.spiral_sde import NUM_DRAWS
from taynode.models import DiagonalNoise, NeuralSDE, Solve


NUM = 40


@pytest.fixture(scope="module")
def true():
    return moments(noisy_spirals(20_000, seed=5))


def losses_of(paths, true):
    """The loss of some trajectories, which stand for the draws of a model, and its metrics."""
    draws = lambda start, times, solve, *, path_key, key: (jnp.asarray(paths), Unsolved({}))
    rows = jtu.tree_map(lambda x: np.repeat(x, len(paths) // NUM_DRAWS, axis=0), true)
    found = lab.find_task("sde-spiral").loss(draws, rows, Solve(), jr.key(0))
    return float(found.loss), {name: float(x) for name, x in found.metrics.items()}


def test_the_loss_is_the_sum_of_mean_squares(true):
    paths = noisy_spirals(NUM * NUM_DRAWS, seed=6)
    loss, metrics = losses_of(paths, true)
    groups = paths.reshape(NUM, NUM_DRAWS, 30, 2)
    errors = groups.mean(axis=1) - true.mean, groups.var(axis=1, ddof=1) - true.variance
    np.testing.assert_allclose(loss, sum(np.mean(x**2) for x in errors), rtol=1e-10)
    # The law is the true one, so that only the metrics are near zero: products of the errors of two
    # halves, each with twice the variance of the whole.
    limits = (4 * 2 * np.mean(x**2) / np.sqrt(NUM) for x in errors)
    for value, limit in zip(metrics.values(), limits, strict=True):
        assert abs(value) < limit < loss


def test_errors_are_those_of_the_law_and_not_of_the_number_of_draws(true):
    paths = noisy_spirals(NUM * NUM_DRAWS, seed=7)
    _, known = losses_of(paths, true)
    _, moved = losses_of(paths + 0.5, true)
    np.testing.assert_allclose(moved["mean_error"], 0.25, rtol=0.05)
    np.testing.assert_allclose(moved["variance_error"], known["variance_error"], rtol=1e-6)
    _, noisier = losses_of(true.mean + 1.5 * (paths - true.mean), true)
    expected = (1.5**2 - 1) ** 2 * np.mean(true.variance**2)
    np.testing.assert_allclose(noisier["variance_error"], expected, rtol=0.15)


class Drift(eqx.Module):
    """The drift of the Stratonovich equation, with its turn scaled."""

    turn: jax.Array

    def __call__(self, t, y, args):
        decay = jnp.diag(jnp.diag(MATRIX))
        return y**3 @ (decay + self.turn * (MATRIX - decay)) - 0.5 * NOISE**2 * y


class Noise(eqx.Module):
    """The noise, scaled."""

    size: jax.Array

    def __call__(self, t, y, args):
        return self.size * NOISE * y


@pytest.mark.slow
def test_the_loss_is_least_for_the_true_equation(true):
    """As the solver of the task solves it, each sample alone."""
    task = lab.find_task("sde-spiral")
    solve = Solve(dfx.SPaRK(), dfx.PIDController(rtol=3e-3, atol=3e-3))
    rows = jtu.tree_map(lambda x: jnp.asarray(np.repeat(x, 20, axis=0)), true)

    @jax.jit
    def outcome(noise, turn):
        diffusion = DiagonalNoise(Noise(noise), None)
        model = NeuralSDE(2, 2, drift=Drift(turn), diffusion=diffusion, key=jr.key(0))

        def one(row, key):
            found = task.loss(model, jtu.tree_map(lambda x: x[None], row), solve, key)
            return found.loss, found.metrics

        return jax.vmap(one)(rows, jr.split(jr.key(3), 20))

    cases = (1.0, 1.0), (1.5, 1.0), (1.0, 1.1)
    (exact, metrics), (noisier, noisy), (faster, turned) = (
        outcome(*map(jnp.asarray, x)) for x in cases
    )
    for values in metrics.values():
        assert abs(values.mean()) < 4 * values.std() / np.sqrt(len(values))
    assert min(noisier.mean(), faster.mean()) > 2 * exact.mean()
    assert noisy["variance_error"].mean() > 0.02
    assert turned["mean_error"].mean() > 0.02


def test_samples_of_a_split_are_the_moments_of_its_trajectories():
    task = lab.find_task("sde-spiral")
    task.scale = "smoke"
    train, test, _ = task.load()
    expected = moments(noisy_spirals(500, seed=1))
    for row in (0, -1):
        np.testing.assert_allclose(test.mean[row], expected.mean[0], rtol=1e-6)
        np.testing.assert_allclose(test.variance[row], expected.variance[0], rtol=1e-6)
    assert not np.allclose(train.mean[0], test.mean[0])
