"""Solutions whose derivatives are known by hand."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn


ORDERS = range(1, 13)


@pytest.mark.parametrize("order", ORDERS)
def test_blow_up_has_factorial_derivatives(order):
    """z' = z^2 through z(0) = 1 is 1/(1 - t)."""
    derivatives = tn.solution_derivatives(lambda t, z, args: z**2, 0.0, 1.0, order=order)
    assert [float(d) for d in derivatives] == [math.factorial(k) for k in range(1, order + 1)]


@pytest.mark.parametrize("order", ORDERS)
def test_logistic_growth(order):
    """z' = z (1 - z) through z(0) = 1/2 is the logistic function; its series at 0 is known."""
    coefficients = tn.taylor_coefficients(lambda t, z, args: z * (1 - z), 0.0, 0.5, order=order)
    # 1/2 + t/4 - t^3/48 + t^5/480 - 17 t^7/80640 + 31 t^9/1451520 - 691 t^11/319334400
    known = {0: 1 / 2, 1: 1 / 4, 3: -1 / 48, 5: 1 / 480, 7: -17 / 80640, 9: 31 / 1451520}
    known[11] = -691 / 319334400
    expected = [known.get(k, 0.0) for k in range(order + 1)]
    np.testing.assert_allclose(np.array(coefficients), expected, rtol=1e-13, atol=1e-17)


@pytest.mark.parametrize("order", ORDERS)
def test_rotation_multiplies_the_norm_by_its_frequency(order):
    """|d^K z|^2 = w^(2K) |z|^2."""
    frequency, z = 1.7, jnp.array([0.6, -1.1])

    def rotate(t, z, args):
        return frequency * jnp.stack([-z[1], z[0]])

    last = tn.solution_derivatives(rotate, 0.0, z, order=order)[-1]
    expected = frequency ** (2 * order) * jnp.sum(z**2)
    np.testing.assert_allclose(jnp.sum(last**2), expected, rtol=1e-13)


@pytest.mark.parametrize("t", [0.0, 0.7])
def test_time_is_part_of_the_expansion(t):
    """z' = t z: each derivative follows from d^(k+1) z = t d^k z + k d^(k-1) z."""
    derivatives = tn.solution_derivatives(lambda t, z, args: t * z, t, 1.3, order=8)
    expected = [1.3, t * 1.3]
    for k in range(1, 8):
        expected.append(t * expected[k] + k * expected[k - 1])
    np.testing.assert_allclose(np.array(derivatives), expected[1:], rtol=1e-14)


def test_division_alternates():
    """1/(1 + t) has coefficients 1, -1, 1, ...; the division rule printed in the paper fails."""
    _, series = tn.jet(
        lambda t: 1 / (1 + t), (0.0,), ([1.0, 0.0, 0.0, 0.0, 0.0],), factorial_scaled=False
    )
    assert [float(c) for c in series] == [-1, 1, -1, 1, -1]


def test_powers_of_series_at_zero_base():
    """(s + s^2)^3 = s^3 + 3 s^4 + 3 s^5 + s^6, which a recurrence that divides by 0 cannot give."""
    for power in (lambda x: x**3, lambda x: x**3.0, lambda x: x * x * x):
        _, series = tn.jet(power, (0.0,), ([1.0, 1.0, 0.0, 0.0, 0.0, 0.0],), factorial_scaled=False)
        assert [float(c) for c in series] == [0, 0, 1, 3, 3, 1]


def test_linear_system_is_the_matrix_exponential():
    a = np.random.default_rng(0).normal(size=(4, 4))
    y = np.arange(1.0, 5.0)
    derivatives = tn.solution_derivatives(lambda t, y, args: args @ y, 0.0, y, a, order=6)
    for k, derivative in enumerate(derivatives, start=1):
        np.testing.assert_allclose(derivative, np.linalg.matrix_power(a, k) @ y, rtol=1e-12)


def test_coefficients_sum_to_the_solution():
    """A Taylor step of order 20 solves y' = cos(t) y, whose solution is exp(sin t)."""
    coefficients = tn.taylor_coefficients(lambda t, y, args: jnp.cos(t) * y, 0.0, 1.0, order=20)
    step = 0.5
    value = sum(float(c) * step**k for k, c in enumerate(coefficients))
    assert value == pytest.approx(math.exp(math.sin(step)), rel=1e-14)
