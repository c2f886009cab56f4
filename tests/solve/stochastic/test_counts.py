"""Evaluations of drift and diffusion beside counters."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import lineax as lx
import pytest

from tests.integration.problems import pid, Tally

from .equations import additive, decay, FIXED, multiplicative, PATH, solve, Y0


class Points(Tally):
    """Notes points instead of times."""

    def note(self, t, y):  # pyright: ignore[reportIncompatibleMethodOverride]
        note = lambda t, y: self._times.append((float(t), *map(float, y)))
        jax.debug.callback(note, t, y)


DRIFT, NOISE = Points(), Points()


def counted(diffusion, path=PATH):
    def f(t, y, args):
        DRIFT.note(t, y)
        return jnp.sin(3 * decay(t, y, args))

    def g(t, y, args):
        # Additive noise must not depend on the state.
        NOISE.note(t, y if diffusion is multiplicative else Y0)
        return diffusion(t, y, args)

    return dfx.MultiTerm(dfx.ODETerm(f), dfx.ControlTerm(g, path))


def distinct(points):
    """Solvers evaluate a product for an increment, and at the same point for its Levy area."""
    return sum(a != b for a, b in zip(points, [None, *points[:-1]], strict=True))


SOLVERS = [
    pytest.param(multiplicative, dfx.SPaRK(), id="SPaRK"),
    pytest.param(additive, dfx.ShARK(), id="ShARK"),
    *(
        pytest.param(diffusion, solver, id=name, marks=pytest.mark.slow)
        for name, diffusion, solver in [
            ("Heun", multiplicative, dfx.Heun()),
            ("Half(EulerHeun)", multiplicative, dfx.HalfSolver(dfx.EulerHeun())),
            ("SRA1", additive, dfx.SRA1()),
            ("Half(GeneralShARK)", multiplicative, dfx.HalfSolver(dfx.GeneralShARK())),
            ("Half(SlowRK)", multiplicative, dfx.HalfSolver(dfx.SlowRK())),
            ("ReversibleHeun", multiplicative, dfx.ReversibleHeun()),
            ("Half(SPaRK)", multiplicative, dfx.HalfSolver(dfx.SPaRK())),
            ("Midpoint", multiplicative, dfx.Midpoint()),
        ]
    ),
]


@pytest.mark.parametrize(("diffusion", "solver"), SOLVERS)
@pytest.mark.parametrize("adaptive", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_evaluations_of_drift_and_diffusion_are_those_of_counters(diffusion, solver, adaptive):
    DRIFT.take()
    NOISE.take()
    controller = pid(2e-2) if adaptive else FIXED
    sol = solve(None, solver, terms=counted(diffusion), stepsize_controller=controller, dt0=1 / 8)
    drift, noise = DRIFT.take(), NOISE.take()
    if diffusion is additive:
        # `init` of the solver checks that the noise is additive; the compiler drops its result.
        noise = noise[1:]
    has_areas = isinstance(solver, dfx.AbstractSRK) and diffusion is multiplicative
    numbers = len(drift), distinct(noise) if has_areas else len(noise)
    assert tuple(map(int, sol.stats["nfe_by_term"])) == numbers
    assert sol.stats["nfe"] == numbers[0]
    assert sol.stats["nfe_exact"] is True
    assert adaptive is False or sol.stats["num_rejected_steps"] > 0


@pytest.mark.slow
def test_the_compiler_evaluates_noise_once_for_an_increment_and_its_area():
    """So that counts of evaluations are those of the compiled program."""

    def g(t, y, args):
        return lx.DiagonalLinearOperator(jnp.arctan2(y, args["noise"]))

    run = lambda y0: solve(g, dfx.SPaRK(), y0=y0, adjoint=dfx.ForwardMode()).ys
    program = jax.jit(run).lower(jnp.asarray(Y0))
    assert program.as_text().count("stablehlo.atan2") == 2
    assert program.compile().as_text().count(" atan2(") == 1


@pytest.mark.slow
def test_milstein_counts_are_not_exact():
    """It evaluates derivatives of the diffusion."""
    sol = solve(multiplicative, dfx.StratonovichMilstein(), dt0=1 / 8)
    assert sol.stats["nfe_exact"] is False
    assert sol.stats["nfe"] == 8
