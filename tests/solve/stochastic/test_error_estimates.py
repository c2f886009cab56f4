"""Error estimates of accepted and of trial steps beside those of diffrax."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn
from tests.integration.problems import pid

from .equations import additive, Here, multiplicative, PARAMETERS, sde, solve


def error_of(solver, diffusion, t0, t1, y0):
    """By diffrax, in units of the tolerance."""

    @jax.jit
    def step(t0, t1, y0):
        terms = sde(diffusion)
        state = solver.init(terms, t0, t1, y0, PARAMETERS)
        return solver.step(terms, t0, t1, y0, PARAMETERS, state, False)[:2]

    y1, error = map(np.asarray, step(jnp.asarray(t0), jnp.asarray(t1), y0))
    scale = 1e-3 + 1e-3 * np.maximum(np.abs(y0), np.abs(y1))
    return np.sqrt(np.mean((error / scale) ** 2))


ESTIMATES = {
    "SPaRK": (multiplicative, dfx.SPaRK()),
    "half": (multiplicative, dfx.HalfSolver(dfx.EulerHeun())),
    "ShARK": (additive, dfx.ShARK()),
}


@pytest.mark.parametrize(
    "case", ["ShARK", *(pytest.param(x, marks=pytest.mark.slow) for x in ("SPaRK", "half"))]
)
def test_error_estimates_are_those_of_diffrax(case):
    diffusion, solver = ESTIMATES[case]
    controller = pid(1e-3)
    sol = solve(
        diffusion,
        solver,
        tn.ErrorEstimate(),
        tn.AcceptedSteps(),
        stepsize_controller=controller,
        saveat=dfx.SaveAt(t0=True, steps=True),
        key=None,
    )
    assert sol.stats["num_rejected_steps"] > 0
    steps = int(sol.stats["num_accepted_steps"])
    ts, ys = sol.ts[: steps + 1], sol.ys[: steps + 1]

    @jax.jit
    def errors(starts, ends, states):
        each = lambda t0, t1, y: solver.step(sde(diffusion), t0, t1, y, PARAMETERS, None, False)[:2]
        return jax.vmap(each)(starts, ends, states)

    y1, error = map(np.asarray, errors(ts[:-1], ts[1:], ys[:-1]))
    np.testing.assert_allclose(y1, ys[1:], rtol=1e-10)
    scale = 1e-3 + 1e-3 * np.maximum(np.abs(ys[:-1]), np.abs(y1))
    scaled = np.sqrt(np.mean((error / scale) ** 2, axis=1))
    assert (scaled < 1).all()
    np.testing.assert_allclose(sol.stats["penalty"], np.sum(scaled * np.diff(ts)), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["ShARK", "SPaRK", "half"])
def test_trial_steps_are_on_the_same_brownian_path(case):
    diffusion, solver = ESTIMATES[case]
    regularizers = {"error": tn.ErrorEstimate(rtol=1e-3, atol=1e-3), "point": Here()}
    penalty = solve(diffusion, solver, regularizers, tn.Sampled(), dt0=1 / 32).stats["penalty"]
    t, y = penalty["point"]
    assert 0 < t < 1 - 1 / 32
    expected = error_of(solver, diffusion, t, t + 1 / 32, y)
    np.testing.assert_allclose(penalty["error"], expected, rtol=1e-8)


@pytest.mark.slow
def test_trial_steps_of_adaptive_solves_have_the_length_that_control_chooses():
    """After a step of length `dt0` from there."""
    regularizers, solver = {"error": tn.ErrorEstimate(), "point": Here()}, dfx.SPaRK()
    penalty = solve(
        multiplicative,
        solver,
        regularizers,
        tn.Sampled(),
        dt0=1 / 64,
        stepsize_controller=pid(1e-3),
    ).stats["penalty"]
    t, y = penalty["point"]
    size = error_of(solver, multiplicative, t, t + 1 / 64, y)
    order = solver.strong_order(None) + 0.5
    length = min(1 / 64 * np.clip(0.9 * size ** (-1 / order), 0.2, 10), 1 - t)
    expected = error_of(solver, multiplicative, t, t + length, y)
    np.testing.assert_allclose(penalty["error"], expected, rtol=1e-8)
