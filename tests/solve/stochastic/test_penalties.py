"""Penalties beside closed forms."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx
import numpy as np
import pytest
from scipy.integrate import trapezoid

import taynode as tn
from tests.integration.problems import KEY, pid

from .equations import (
    additive,
    CASES,
    GRID,
    Here,
    multiplicative,
    PARAMETERS,
    PATH,
    sde,
    SLOPES,
    solve,
)


@pytest.fixture(scope="module")
def motion():
    return np.asarray(jax.jit(jax.vmap(PATH.evaluate))(jnp.asarray(GRID)))


@pytest.mark.parametrize(
    "case", ["SPaRK", *(pytest.param(x, marks=pytest.mark.slow) for x in ("additive", "Heun"))]
)
def test_penalties_are_those_of_the_closed_form(case, motion):
    """The drift's k-th derivative is that of its own flow: (-rate)^k y."""
    diffusion, solver, closed_form = CASES[case]
    path = closed_form(motion)
    rate, noise = PARAMETERS["rate"], PARAMETERS["noise"]
    energy = trapezoid(np.mean(path**2, axis=1), GRID)
    expected = {
        "K": rate**2 * energy,
        "R_2": rate**4 * energy,
        "noise": noise**2 * (1.0 if case == "additive" else energy),
    }
    for quadrature in (tn.Augmented(), tn.Sampled(points=100)):
        sol = solve(diffusion, solver, SLOPES, quadrature)
        np.testing.assert_allclose(sol.ys[-1], path[-1], rtol=5e-3)
        for name, value in expected.items():
            np.testing.assert_allclose(sol.stats["penalty"][name], value, rtol=5e-3)


@pytest.mark.slow
def test_sampled_has_the_mean_of_augmented():
    sampled = lambda key: solve(
        additive, dfx.ShARK(), SLOPES, tn.Sampled(), key=key, dt0=1 / 16
    ).stats["penalty"]["R_2"]
    values = np.asarray(jax.jit(jax.vmap(sampled))(jr.split(KEY, 2000)))
    exact = solve(additive, dfx.ShARK(), SLOPES, tn.Augmented(), dt0=1 / 16).stats["penalty"]["R_2"]
    assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(len(values))
    assert values.std() > 0.1 * exact


def matrix(t, y, args):
    """Three sources of noise for two elements, as an array."""
    return args["noise"] * jnp.outer(y, jnp.array([1.0, 2.0, -1.0]))


def operator(t, y, args):
    return lx.MatrixLinearOperator(matrix(t, y, args))


@pytest.mark.parametrize("diffusion", [matrix, pytest.param(operator, marks=pytest.mark.slow)])
def test_the_norm_of_a_matrix_of_noise(diffusion):
    path = dfx.VirtualBrownianTree(0.0, 1.0, 1e-3, (3,), jr.key(1))
    regularizers = {
        "all": tn.DiffusionNorm(),
        "second": tn.DiffusionNorm(where=lambda y: y[1]),
        "point": Here(),
    }
    options = dict(terms=sde(diffusion, path), dt0=1 / 16)
    penalty = solve(None, dfx.Heun(), regularizers, tn.Sampled(), **options).stats["penalty"]
    _, y = penalty["point"]
    g = PARAMETERS["noise"] * np.outer(y, [1.0, 2.0, -1.0])
    np.testing.assert_allclose(penalty["all"], np.sum(g**2) / 2, rtol=1e-12)
    np.testing.assert_allclose(penalty["second"], np.sum(g[1] ** 2), rtol=1e-12)


@pytest.mark.slow
def test_samples_with_paths_of_their_own():
    def one(key):
        path = dfx.VirtualBrownianTree(0.0, 1.0, 1e-3, (2,), key, levy_area=dfx.SpaceTimeLevyArea)
        return solve(
            None,
            dfx.SPaRK(),
            {"slopes": SLOPES, "error": tn.ErrorEstimate()},
            tn.Sampled(),
            terms=sde(multiplicative, path),
            stepsize_controller=pid(1e-2),
        ).stats

    keys = jr.split(jr.key(5), 3)
    stats = jax.jit(jax.vmap(one))(keys)
    for i, key in enumerate(keys):
        alone = jax.jit(one)(key)
        for name in ("penalty", "nfe", "nfe_by_term"):
            mine = jax.tree.map(lambda x, i=i: x[i], stats[name])
            for a, b in zip(*map(jax.tree.leaves, (mine, alone[name])), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-8)
    assert len(set(np.asarray(stats["nfe"]).tolist())) > 1


ROWS = dfx.VirtualBrownianTree(0.0, 1.0, 1e-3, (3, 2), jr.key(4))
BATCH = np.array([[1.0, 2.0], [0.5, -1.0], [-2.0, 0.1]])


def row_noise(t, y, args):
    return lx.DiagonalLinearOperator(args["noise"] * y)


@pytest.mark.slow
def test_rows_of_a_joint_batch_have_times_of_their_own():
    quadrature = tn.Sampled(points=60, batch_axis=0)
    options = dict(terms=sde(row_noise, ROWS), y0=jnp.asarray(BATCH), dt0=1 / 64)
    rows = solve(None, dfx.Heun(), SLOPES, quadrature, **options).stats["penalty"]
    whole = solve(None, dfx.Heun(), SLOPES, tn.Augmented(), **options).stats["penalty"]
    for name in SLOPES:
        np.testing.assert_allclose(rows[name], whole[name], rtol=2e-2)


def test_trial_steps_of_single_rows_are_refused():
    quadrature, error = tn.Sampled(batch_axis=0), tn.ErrorEstimate(rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="structure") as caught:
        solve(
            None,
            dfx.Heun(),
            error,
            quadrature,
            terms=sde(row_noise, ROWS),
            y0=jnp.asarray(BATCH),
        )
    assert any("without `batch_axis`" in note for note in caught.value.__notes__)


@pytest.mark.slow
def test_a_split_equation_has_the_slope_of_the_sum():
    fast = lambda t, y, args: -args["rate"] * y
    slow = lambda t, y, args: jnp.stack([jnp.sin(y[1]), t * y[0]])
    both = lambda t, y, args: fast(t, y, args) + slow(t, y, args)
    split = dfx.MultiTerm(dfx.ODETerm(fast), dfx.ODETerm(slow))
    options = dict(stepsize_controller=pid(1e-8), dt0=0.01)
    penalties = [
        solve(None, solver, tn.TotalDerivative(3), quadrature, terms=terms, **options).stats[
            "penalty"
        ]
        for terms, solver, quadrature in [
            (dfx.ODETerm(both), dfx.Tsit5(), tn.Augmented()),
            (split, dfx.KenCarp4(), tn.Sampled(points=100)),
            (split, dfx.Tsit5(), tn.Augmented()),
        ]
    ]
    np.testing.assert_allclose(penalties[1:], penalties[0], rtol=2e-3)
    sol = solve(None, dfx.Tsit5(), terms=split, **options)
    assert sol.stats["nfe_exact"] is True
