"""A neural stochastic differential equation as a model."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import taynode as tn
from taynode.models import (
    AutonomousMLP,
    DiagonalNoise,
    energy_score,
    glorot_dense,
    NeuralSDE,
    NeuralSDEClassifier,
    Solve,
)


TIMES = jnp.array([0.25, 1.0])
Y0 = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.3, -0.4]])
MODEL = NeuralSDE(2, 4, tol=1e-3, key=jr.key(0))


def test_paths_are_those_of_diffrax():
    ys, solution = eqx.filter_jit(MODEL)(Y0, TIMES, path_key=jr.key(1))
    plain = dfx.diffeqsolve(
        MODEL.terms(Y0, jr.key(1)),
        dfx.SPaRK(),
        0.0,
        1.0,
        None,
        Y0,
        saveat=dfx.SaveAt(ts=TIMES),
        stepsize_controller=dfx.PIDController(rtol=1e-2, atol=1e-2),
    )
    np.testing.assert_allclose(ys, plain.ys.swapaxes(0, 1), rtol=1e-10)
    assert solution.stats["nfe_exact"] is True
    assert solution.stats["nfe"] == 3 * plain.stats["num_steps"]


@pytest.mark.slow
def test_gradients_with_penalties():
    regularizers = {"drift": tn.TotalDerivative(2), "noise": tn.DiffusionNorm()}
    solve = Solve(dfx.SPaRK(), num_steps=8, regularizer=regularizers)

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model):
        ys, solution = model(Y0, TIMES, solve, path_key=jr.key(1), key=jr.key(2))
        return jnp.sum(ys**2) + sum(jax.tree.leaves(solution.stats["penalty"]))

    leaves = jtu.tree_leaves(gradient(MODEL))
    assert all(np.all(np.isfinite(x)) and np.any(x != 0) for x in leaves)


CUBES = lambda y: y**3


def spiral(key):
    """A drift of cubes and a linear diffusion."""
    layers = dict(dense=glorot_dense, key=key)
    drift = AutonomousMLP((2, 4, 2), first=CUBES, **layers)
    noise = DiagonalNoise(AutonomousMLP((2, 2), first=None, **layers), None)
    return NeuralSDE(2, 4, drift=drift, diffusion=noise, tol=1e-3, key=key)


def of_paths(model, solve):
    ys, solution = model(Y0, TIMES, solve, path_key=jr.key(1), key=jr.key(2))
    return jnp.sum(ys**2), solution


def of_logits(model, solve):
    logits, solution = model(Y0, solve, num_draws=2, key=jr.key(1))
    return jnp.sum(jax.nn.log_softmax(logits)[:, 0]), solution


CLASSIFIER = NeuralSDEClassifier(2, 3, size=3, width=4, tol=1e-3, key=jr.key(5))
MODELS = {
    "generator": (MODEL, of_paths),
    "spiral": (spiral(jr.key(4)), of_paths),
    "classifier": (CLASSIFIER, of_logits),
}


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("generator", "spiral")]


@pytest.mark.parametrize("name", ["classifier", *SLOW])
def test_gradients_are_those_of_finite_differences(name):
    """On a fixed Brownian path, with the errors of the steps."""
    model, value_of = MODELS[name]
    # Large tolerances, so that errors count as much as the rest.
    error = tn.ErrorEstimate(rtol=1e-2, atol=1e-2)
    solve = Solve(dfx.SPaRK(), num_steps=4, regularizer=error, quadrature=tn.AcceptedSteps())
    params, static = eqx.partition(model, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(params)

    @jax.jit
    @jax.value_and_grad
    def value(flat):
        found, solution = value_of(eqx.combine(unravel(flat), static), solve)
        return found + solution.stats["penalty"]

    direction = np.random.default_rng(0).normal(size=flat.shape)
    _, gradient = value(flat)
    (more, _), (less, _) = (value(flat + x * 1e-5 * direction) for x in (1.0, -1.0))
    np.testing.assert_allclose(gradient @ direction, (more - less) / 2e-5, rtol=1e-6)
    assert np.all(gradient != 0)


def test_logits_are_means_over_paths_of_each_input():
    key, solve = jr.key(3), Solve(dfx.Heun(), num_steps=4)

    @eqx.filter_jit
    def found(model):
        logits, solution = model(Y0, solve, num_draws=2, key=key)
        path_key, _ = jr.split(key)
        starts = jnp.repeat(model.initial_state(Y0), 2, axis=0)
        ends, alone = model.sde(starts, jnp.ones(1), solve, path_key=path_key)
        return logits, ends[:, -1], solution.stats["nfe"], alone.stats["nfe"]

    logits, ends, *counts = found(CLASSIFIER)
    # Paths of an input differ.
    assert np.all(ends[::2] != ends[1::2])
    head = CLASSIFIER.head
    expected = ends.reshape(3, 2, -1).mean(axis=1) @ np.asarray(head.weight) + head.bias
    np.testing.assert_allclose(logits, expected, rtol=1e-10)
    assert counts[0] == counts[1]


def test_energy_score_is_that_of_all_pairs_and_proper():
    random = np.random.default_rng(0)
    draws, observed = random.normal(size=(5, 3, 2)), random.normal(size=(4, 3, 2))
    distance = lambda a, b: np.sqrt(np.mean((a - b) ** 2))
    pairs = [distance(a, b) for i, a in enumerate(draws) for j, b in enumerate(draws) if i != j]
    expected = np.mean([distance(a, b) for a in draws for b in observed]) - np.mean(pairs) / 2
    score = jax.jit(energy_score)
    np.testing.assert_allclose(score(*map(jnp.asarray, (draws, observed))), expected, rtol=1e-12)

    # On a line it is the continuous ranked probability score, least for the true distribution.
    y = random.normal(size=(20_000, 1, 1))
    score = jax.jit(lambda x: jnp.mean(jax.vmap(energy_score)(x, y)))
    cases = (1.0, 0.0), (0.7, 0.0), (1.4, 0.0), (1.0, 0.4)
    scores = [score(s * random.normal(size=(20_000, 4, 1)) + m) for s, m in cases]
    np.testing.assert_allclose(scores[0], 1 / np.sqrt(np.pi), rtol=0.02)
    assert min(scores[1:]) > scores[0] + 0.01
