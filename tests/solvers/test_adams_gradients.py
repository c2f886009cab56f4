"""Gradients through Adams' method."""

from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from .adams_problems import end, solve


Y0 = jnp.array([1.0, 0.5])


def rotated(y0, rate, t1, **options):
    """A rotation by `rate * t1`, by a solve."""
    turn = lambda t, y, rate: rate * jnp.stack([-y[1], y[0]])
    return end(solve(turn, 0.0, t1, 1e-3, y0, rate, tolerance=1e-9, max_steps=128, **options))


def rotated_exactly(y0, rate, t1):
    cos, sin = jnp.cos(rate * t1), jnp.sin(rate * t1)
    return jnp.stack([cos * y0[0] - sin * y0[1], sin * y0[0] + cos * y0[1]])


def gradient_of(fun, arguments):
    return jax.jit(jax.grad(lambda *x: jnp.dot(fun(*x), jnp.array([1.0, 2.0])), arguments))


# Also with the end of the interval, on which all steps depend.
CHECKPOINTED = gradient_of(rotated, (0, 1, 2))


@pytest.mark.parametrize(
    "gradient",
    [
        pytest.param(CHECKPOINTED, marks=pytest.mark.slow),
        gradient_of(lambda *x: rotated(*x, adjoint=dfx.DirectAdjoint()), (0, 1)),
        pytest.param(
            gradient_of(lambda *x: rotated(*x, adjoint=dfx.BacksolveAdjoint()), (0, 1)),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["RecursiveCheckpointAdjoint", "DirectAdjoint", "BacksolveAdjoint"],
)
def test_reverse_mode_gradients(gradient):
    found = gradient(Y0, jnp.array(3.0), 1.0)
    expected = gradient_of(rotated_exactly, (0, 1, 2))(Y0, jnp.array(3.0), 1.0)
    for one, other in zip(found, expected, strict=False):
        # Ten tolerances; the gradient has a size of about 5.
        np.testing.assert_allclose(one, other, atol=1e-8)


def test_forward_mode_gradients():
    primals, tangents = (Y0, jnp.array(3.0)), (jnp.array([0.3, -1.0]), jnp.array(0.7))
    fun = lambda y0, rate: rotated(y0, rate, 1.0, adjoint=dfx.ForwardMode())
    _, found = jax.jit(lambda p, t: jax.jvp(fun, p, t))(primals, tangents)
    _, expected = jax.jvp(lambda y0, rate: rotated_exactly(y0, rate, 1.0), primals, tangents)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.slow
def test_gradients_of_saved_values():
    """For a nonlinear system, between steps, against differences of SciPy's solutions."""
    field = lambda t, y, rate: jnp.stack([y[1], -rate * jnp.sin(y[0])])
    times = np.array([0.4, 1.1, 2.0])

    def total(rate):
        saveat = dfx.SaveAt(ts=jnp.asarray(times))
        options = dict(saveat=saveat, max_steps=128, adjoint=dfx.DirectAdjoint())
        solution = solve(field, 0.0, 2.0, 1e-3, Y0, rate, tolerance=1e-10, **options)
        return jnp.sum(jnp.asarray(solution.ys) ** 2)

    def total_by_scipy(rate):
        slope = lambda t, y: [y[1], -rate * np.sin(y[0])]
        options: Any = dict(method="DOP853", t_eval=times, rtol=3e-14, atol=1e-15)
        return np.sum(scipy.integrate.solve_ivp(slope, (0.0, 2.0), Y0, **options).y ** 2)

    difference = (total_by_scipy(4.0 + 1e-4) - total_by_scipy(4.0 - 1e-4)) / 2e-4
    found = jax.jit(jax.grad(total))(jnp.array(4.0))
    assert float(found) == pytest.approx(difference, abs=1e-7)


@pytest.mark.slow
def test_gradients_at_rest_are_finite():
    """An error of exactly zero, and no past points at the first step.

    BUG, fixed: the gradient with respect to the end of the interval was NaN.
    """
    found = CHECKPOINTED(jnp.zeros(2), jnp.array(0.0), 1.0)
    for one, expected in zip(found, ([1.0, 2.0], 0.0, 0.0), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.slow
def test_gradient_across_a_jump():
    field = lambda t, y, rate: jnp.where(t < 1.0, rate, -2 * rate) * y

    def last(rate):
        options = dict(jump_ts=[1.0], max_steps=128, adjoint=dfx.DirectAdjoint())
        solution = solve(field, 0.0, 2.0, 0.01, jnp.array(1.0), rate, **options)
        return end(solution)

    found = jax.jit(jax.grad(last))(jnp.array(0.7))
    assert float(found) == pytest.approx(-np.exp(-0.7), abs=1e-7)
