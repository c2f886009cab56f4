"""Accuracy where naive formulas lose it: tiny arguments, saturation, high orders in float32."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import taynode as tn


def float32(x):
    return jnp.asarray(x, jnp.float32)


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (jnp.log1p, 1e-6),
        (jnp.expm1, 1e-6),
        (jnp.tanh, 1e-6),
        (jax.scipy.special.erfc, 4.0),
        (jnp.arcsinh, -1e4),
        (lambda x: x**0.5, 2.0),
    ],
)
def test_the_primal_is_the_function_itself(fun, x):
    x = float32(x)
    primal, _ = tn.jet(fun, (x,), ([float32(1.0)] * 3,))
    assert primal == fun(x)
    assert primal.dtype == jnp.float32


@pytest.mark.parametrize("x", [-30.0, -8.0, 8.0, 30.0])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize(
    ("fun", "exact"),
    [
        (jax.nn.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x))),
        (jnp.tanh, mpmath.tanh),
    ],
)
def test_saturated_functions_keep_their_relative_accuracy(fun, exact, dtype, x):
    order = 5
    one, zero = (jnp.asarray(c, dtype) for c in (1.0, 0.0))
    _, series = tn.jet(fun, (jnp.asarray(x, dtype),), ([one] + [zero] * (order - 1),))
    with mpmath.workdps(80):
        expected = [float(mpmath.diff(exact, mpmath.mpf(x), k)) for k in range(1, order + 1)]
    np.testing.assert_allclose(
        np.array(series, np.float64), expected, rtol=200 * float(jnp.finfo(dtype).eps)
    )


@pytest.mark.parametrize("order", range(1, 13))
def test_high_orders_in_float32(order):
    """z' = exp(z) has d^K z = (K - 1)! exp(K z): no cancellation, so only factorials can be off."""
    z = float32(0.1)
    last = tn.solution_derivatives(lambda t, z, args: jnp.exp(z), float32(0.0), z, order=order)[-1]
    expected = math.factorial(order - 1) * math.exp(order * float(z))
    assert last.dtype == jnp.float32
    assert abs(float(last) - expected) <= (order + 4) * float(jnp.finfo(jnp.float32).eps) * expected


def test_a_tiny_base_of_an_integer_power_is_exact():
    """Recurrences that divide by the base lose all digits at 1e-12; products do not."""
    x = 1e-12
    _, series = tn.jet(lambda x: x**3, (x,), ([1.0, 0.0, 0.0, 0.0, 0.0],))
    np.testing.assert_allclose(np.array(series), [3 * x**2, 6 * x, 6.0, 0.0, 0.0], rtol=1e-13)
