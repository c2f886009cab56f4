"""Fixed grids, in both directions of time."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn
from taynode import FixedGrid
from taynode.models import Solve


Y0 = jnp.array([1.0, -0.5])
RATE = jnp.array(0.7)


def field(t, y, rate):
    return jnp.stack([y[1], -rate * jnp.sin(y[0]) + 0.1 * t])


def test_steps_are_those_of_step_to():
    ts = jnp.array([0.0, 0.1, 0.4, 0.45, 1.0])
    for times in (ts, ts[::-1]):
        found, expected = (
            dfx.diffeqsolve(
                dfx.ODETerm(field),
                tn.solvers.RK4(),
                times[0],
                times[-1],
                None,
                Y0,
                RATE,
                saveat=dfx.SaveAt(steps=True),
                stepsize_controller=controller,
                max_steps=8,
            )
            for controller in (FixedGrid(times), dfx.StepTo(times))
        )
        np.testing.assert_array_equal(found.ts, expected.ts)
        np.testing.assert_array_equal(found.ys, expected.ys)


@pytest.mark.slow
@pytest.mark.parametrize("ts", [None, jnp.array([0.3, 0.5, 1.0])])
def test_backsolve_on_a_grid(ts):
    """It once said that times must be increasing: those of the backward solve were not."""
    saveat = dfx.SaveAt(t1=True) if ts is None else dfx.SaveAt(ts=ts)

    def gradient(differentiate, adjoint):
        solve = Solve(solver=tn.solvers.RK4(), num_steps=64, adjoint=adjoint)
        loss = lambda rate: jnp.sum(jnp.asarray(solve(field, Y0, rate, saveat=saveat).ys) ** 2)
        return eqx.filter_jit(differentiate(loss))(RATE)

    exact = gradient(jax.jacfwd, dfx.ForwardMode())
    # Both are approximations, of order 4.
    np.testing.assert_allclose(gradient(jax.grad, dfx.BacksolveAdjoint()), exact, rtol=1e-6)


def test_misuse_is_told():
    with pytest.raises(ValueError, match=r"at least two times, got shape \(1,\)"):
        FixedGrid(jnp.zeros(1))
    with pytest.raises(Exception, match="strictly increasing or decreasing"):
        Solve(num_steps=2)(field, Y0, RATE, t0=1.0, t1=1.0)
    with pytest.raises(ValueError, match="`dt0` must be `None`"):
        dfx.diffeqsolve(
            dfx.ODETerm(field),
            dfx.Euler(),
            0.0,
            1.0,
            0.1,
            Y0,
            RATE,
            stepsize_controller=FixedGrid(jnp.array([0.0, 1.0])),
        )


def test_grid_that_ends_before_the_solve_says_so():
    # BUG, fixed: it made steps of length zero until `max_steps`.
    for t1, ts in ((1.0, [0.0, 0.5, 0.9]), (-1.0, [0.0, -0.5, -0.9])):
        with pytest.raises(Exception, match=r"`FixedGrid\(ts\)` ends before the solve does"):
            tn.diffeqsolve(
                dfx.ODETerm(field),
                dfx.Euler(),
                0.0,
                t1,
                None,
                Y0,
                RATE,
                stepsize_controller=FixedGrid(jnp.array(ts)),
                max_steps=8,
            )


@pytest.mark.filterwarnings("ignore:Complex dtype support in Diffrax:UserWarning")
def test_complex_states_do_not_make_time_complex():
    # BUG, fixed: the times of `Solve` had the type of the state.
    solve = Solve(solver=dfx.Heun(), num_steps=100)
    sol = solve(lambda t, y, args: 1j * y, jnp.ones((2, 1), jnp.complex64))
    assert sol.ts.dtype == jnp.float32
    np.testing.assert_allclose(sol.ys[0], np.full((2, 1), np.exp(1j)), rtol=1e-4)


def test_models_sample_a_time_for_each_row_by_default():
    # The default was `Augmented()`, which costs several times as much.
    solve = Solve(solver=dfx.Heun(), num_steps=4, regularizer=tn.KineticEnergy())
    run = lambda **key: solve(lambda t, y, args: t * jnp.ones_like(y), jnp.zeros((3, 1)), **key)
    sol = run(key=jax.random.key(0))
    assert sol.stats["penalty_evaluations"] == 1
    with pytest.raises(ValueError, match="needs `key=`"):
        run()
