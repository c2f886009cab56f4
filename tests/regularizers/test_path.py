"""Penalties on whole paths: against a fit by numpy, and on polynomials."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import taynode as tn
from tests.quadrature.reference import close


CONTROL = dfx.PIDController(rtol=1e-10, atol=1e-10)


def penalty(field, degree, points, key, y0=(1.0, -0.5), **options):
    return tn.diffeqsolve(
        dfx.ODETerm(field), dfx.Tsit5(), 0.0, 2.0, None, jnp.array(y0), 3.0,
        stepsize_controller=CONTROL, regularizer=tn.PolynomialDistance(degree),
        quadrature=tn.PathPoints(points), key=key, **options,
    ).stats["penalty"]  # fmt: skip


def test_a_polynomial_is_free_and_one_of_higher_degree_is_not():
    cubic = lambda t, y, args: jnp.stack([3 * t**2 - t, 1 + 2 * t])
    close(penalty(cubic, 3, 4, jr.key(0)), 0.0, 0.0, 1e-15)
    assert penalty(cubic, 2, 4, jr.key(0)) > 1e-4


def test_the_distance_is_that_of_a_fit_by_numpy():
    """y = y0 exp(t), at the times that the same key draws."""
    key, y0 = jr.key(3), np.array([1.0, -0.5])
    inner = np.sort(jr.uniform(key, (3,)))
    times = 2.0 * np.concatenate([[0.0], inner, [1.0]])
    states = np.exp(times)[:, None] * y0
    fit = np.polynomial.polynomial.polyfit(times, states, 1)
    expected = np.mean((states - np.polynomial.polynomial.polyval(times, fit).T) ** 2)
    exponential = lambda t, y, rate: rate / 3 * y
    close(penalty(exponential, 1, 3, key), expected, 1e-8)


@pytest.mark.slow
def test_it_has_a_gradient():
    value = lambda a: penalty(lambda t, y, args: jnp.sin(a * y), 1, 1, jr.key(0))
    h = 1e-5
    close(jax.grad(value)(1.3), (value(1.3 + h) - value(1.3 - h)) / (2 * h), 1e-6)


def test_too_few_points_and_other_quadratures_are_refused():
    field = lambda t, y, args: -y
    with pytest.raises(ValueError, match=r"PathPoints\(points=2\)"):
        penalty(field, 2, 1, jr.key(0))
    with pytest.raises(ValueError, match="needs `key="):
        penalty(field, 1, 1, None)
    with pytest.raises(TypeError, match="needs `quadrature=tn"):
        tn.diffeqsolve(
            dfx.ODETerm(field), dfx.Tsit5(), 0.0, 2.0, 0.1, jnp.ones(2),
            regularizer=tn.PolynomialDistance(), key=jr.key(0),
        )  # fmt: skip


def test_a_path_of_length_zero_has_no_penalty():
    """The points were divided by the length."""
    times, states = jnp.zeros(4), jnp.ones((4, 2))
    close(tn.PolynomialDistance(1).of_path(times, states), 0.0, 0.0, 1e-15)
