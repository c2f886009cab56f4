"""Gradients on a fixed path, and steps that a penalty leaves as they are."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn
from tests.integration.problems import distance, pid

from .equations import CASES, multiplicative, PARAMETERS, SLOPES, solve, Y0


ERROR = tn.ErrorEstimate(rtol=1e-2, atol=1e-2)
WAYS = {
    "sampled": (SLOPES | {"error": ERROR}, tn.Sampled(points=2)),
    "augmented": (SLOPES, tn.Augmented()),
    "steps": (ERROR, tn.AcceptedSteps()),
}


@pytest.mark.parametrize(
    ("way", "case"),
    [
        ("sampled", "additive"),
        pytest.param("sampled", "SPaRK", marks=pytest.mark.slow),
        pytest.param("augmented", "additive", marks=pytest.mark.slow),
        pytest.param("augmented", "SPaRK", marks=pytest.mark.slow),
        pytest.param("steps", "additive", marks=pytest.mark.slow),
        pytest.param("steps", "SPaRK", marks=pytest.mark.slow),
    ],
)
def test_gradients_are_finite_differences_on_the_path(way, case):
    diffusion, solver, _ = CASES[case]

    @jax.jit
    @jax.value_and_grad
    def both(vector):
        args = {"rate": vector[0], "noise": vector[1]}
        sol = solve(diffusion, solver, *WAYS[way], args, y0=vector[2:], dt0=1 / 8)
        return sum(jax.tree.leaves(sol.stats["penalty"])) + jnp.sum(sol.ys**2)

    point = np.array([*PARAMETERS.values(), *Y0])
    _, gradient = both(point)
    step = 1e-6 * np.eye(len(point))
    differences = [(both(point + d)[0] - both(point - d)[0]) / 2e-6 for d in step]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-8)
    assert (np.abs(gradient) > 1e-4).all()


@pytest.mark.slow
def test_gradients_of_adaptive_solves_are_those_of_diffrax():
    """With the step sizes held fixed, which finite differences do not do."""

    def gradient(adjoint):
        def total(args):
            sol = solve(
                multiplicative,
                dfx.SPaRK(),
                tn.ErrorEstimate(),
                tn.AcceptedSteps(),
                args,
                adjoint=adjoint,
                stepsize_controller=pid(1e-3),
            )
            return sol.stats["penalty"]

        return jax.jit(jax.grad(total))(jax.tree.map(jnp.asarray, PARAMETERS))

    ours, theirs = map(gradient, (tn.AcceptedStepAdjoint(), dfx.RecursiveCheckpointAdjoint()))
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-8)


@pytest.mark.parametrize(
    "way",
    [
        (tn.ErrorEstimate(), tn.AcceptedSteps()),
        pytest.param((SLOPES, tn.Sampled()), marks=pytest.mark.slow),
        pytest.param((SLOPES, tn.Augmented()), marks=pytest.mark.slow),
    ],
)
def test_the_penalty_does_not_change_steps(way):
    options = dict(stepsize_controller=pid(1e-3), saveat=dfx.SaveAt(steps=True), max_steps=512)
    plain = solve(multiplicative, dfx.SPaRK(), lib=dfx, **options)
    ours = solve(multiplicative, dfx.SPaRK(), *way, **options)
    assert distance(ours.ts, plain.ts) == 0
    assert distance(ours.ys, plain.ys) < 1e-13
    assert ours.stats["nfe_exact"]
