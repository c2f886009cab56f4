"""Solvers of one's own, whose steps do arithmetic on the state."""

from collections.abc import Callable
from typing import ClassVar

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import taynode as tn


class Heun(dfx.AbstractAdaptiveSolver):
    """`y0 + dt * f`, which works for arrays alone."""

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar[Callable] = dfx.LocalLinearInterpolation

    def order(self, terms):
        return 2

    def init(self, terms, t0, t1, y0, args):
        return None

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        dt = terms.contr(t0, t1)
        f0 = terms.vf(t0, y0, args)
        euler = y0 + dt * f0
        y1 = y0 + dt * 0.5 * (f0 + terms.vf(t1, euler, args))
        return y1, jnp.abs(y1 - euler), dict(y0=y0, y1=y1), None, dfx.RESULTS.successful


class CrankNicolson(Heun):
    """As in diffrax's example of the heat equation: an implicit step by fixed-point iteration."""

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        dt = t1 - t0
        f0 = terms.vf(t0, y0, args)
        iterate = lambda y, _: y0 + 0.5 * dt * (f0 + terms.vf(t1, y, args))
        finder = optx.FixedPointIteration(rtol=1e-10, atol=1e-10)
        y1 = optx.fixed_point(iterate, finder, y0 + dt * f0, throw=False).value
        error = jnp.abs(y1 - (y0 + dt * f0))
        return y1, error, dict(y0=y0, y1=y1), None, dfx.RESULTS.successful


RATE, Y0 = jnp.array(0.7), jnp.array([1.0, 2.0])


def solve(a, solver, *, span=(0.0, 1.0), controller=None, steps=200, **options):
    t0, t1 = span
    return tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, a: a * y),
        solver,
        t0,
        t1,
        (t1 - t0) / steps,
        Y0,
        a,
        stepsize_controller=dfx.ConstantStepSize() if controller is None else controller,
        max_steps=512,
        **{"regularizer": tn.KineticEnergy(), "quadrature": tn.Augmented(), **options},
    )


def energy(a, length):
    """The integral of the mean square of `a y0 exp(a t)`."""
    return a * jnp.expm1(2 * a * length) / 2 * jnp.mean(Y0**2)


OWN = {"Heun": Heun(), "Crank-Nicolson": CrankNicolson()}


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_own_solvers_work_under_augmented(name):
    # BUG, fixed: "Only integer scalar arrays can be converted to a scalar index".
    solver = OWN[name]
    # The default takes longer to compile.
    adjoint = dfx.RecursiveCheckpointAdjoint() if name == "Heun" else dfx.DirectAdjoint()
    penalty = lambda a: solve(a, solver, adjoint=adjoint).stats["penalty"]
    # Of second order in the step of 1/200; dense output is linear.
    value, gradient = jax.value_and_grad(penalty)(RATE)
    expected, slope = jax.value_and_grad(energy)(RATE, 1.0)
    np.testing.assert_allclose((value, gradient), (expected, slope), rtol=1e-4)


def test_half_steps_of_an_own_solver():
    penalty = solve(RATE, dfx.HalfSolver(Heun())).stats["penalty"]
    np.testing.assert_allclose(penalty, energy(RATE, 1.0), rtol=1e-4)


@pytest.mark.slow
def test_own_solver_with_adaptive_steps_and_backward_in_time():
    """What rejected steps add is forgotten. The steps are those of the plain solve."""
    controller = dfx.PIDController(rtol=1e-4, atol=1e-4)
    options = dict(span=(1.0, 0.0), steps=1, controller=controller)
    sol = solve(RATE, Heun(), **options)
    plain = solve(RATE, Heun(), **options, regularizer=None)
    assert sol.stats["num_rejected_steps"] > 0
    assert sol.stats["num_steps"] == plain.stats["num_steps"]
    np.testing.assert_array_equal(sol.ys, plain.ys)
    expected = -energy(RATE, -1.0)
    np.testing.assert_allclose(sol.stats["penalty"], expected, rtol=1e-3)
    assert sol.stats["penalty_evaluations"] == 2 * sol.stats["num_steps"]


@pytest.mark.slow
def test_own_solver_with_forward_mode():
    penalty = lambda a: solve(a, Heun(), adjoint=dfx.ForwardMode()).stats["penalty"]
    gradient = jax.jacfwd(penalty)(RATE)
    np.testing.assert_allclose(gradient, jax.grad(energy)(RATE, 1.0), rtol=1e-4)


def test_own_tableau_is_stepped_by_diffrax():
    class Own(dfx.AbstractERK):
        tableau: ClassVar = dfx.Bosh3.tableau
        interpolation_cls: ClassVar[Callable] = dfx.Bosh3.interpolation_cls

        def order(self, terms):
            return 3

    own, theirs = (solve(RATE, s, steps=8).stats["penalty"] for s in (Own(), dfx.Bosh3()))
    assert own == theirs


EVENT = dfx.Event(lambda t, y, args, **others: y[0] - 1.5, optx.Newton(1e-8, 1e-8))
REFUSED = {
    "backsolve": (
        dict(adjoint=dfx.BacksolveAdjoint()),
        r"`quadrature=tn.Sampled\(\)`, or `adjoint",
    ),
    "event": (dict(event=EVENT), r"`root_finder`.*`quadrature=tn.Sampled\(\)`"),
    "Backward": (dict(quadrature=tn.Backward()), r"`solver=Heun\(\)`.*use `Augmented\(\)`"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_own_solvers_cannot_do_names_a_way_out(case):
    options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        solve(RATE, Heun(), **options)


class OwnSteps(dfx.AbstractERK):
    """An explicit Runge-Kutta method with steps of its own, which have no stages."""

    tableau: ClassVar = dfx.Heun.tableau
    interpolation_cls: ClassVar[Callable] = dfx.LocalLinearInterpolation

    def order(self, terms):
        return 2

    def init(self, terms, t0, t1, y0, args):
        return None

    step = Heun.step


@pytest.mark.parametrize("points", [1, 3])
def test_methods_with_steps_of_their_own_are_read_at_random_times(points):
    """Readings as combinations of stages failed where there are none."""
    solution = tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: -y),
        OwnSteps(),
        0.0,
        1.0,
        0.125,
        jnp.array([1.0, 2.0]),
        regularizer=tn.KineticEnergy(),
        quadrature=tn.Sampled(points=points),
        key=jax.random.key(0),
    )
    assert 0.3 < solution.stats["penalty"] < 2.6
