"""Products, quotients and powers."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend.core import primitives as p

from ..program import Equation
from ..registry import ANY, rule_for, RULES
from ..series import (
    add,
    convolve,
    convolve_self,
    divide,
    instantiate,
    multiply,
    negate,
    quotient,
    scale,
    subtract,
)
from .derived import from_derivative


def _one_is_active(equation: Equation) -> bool:
    return sum(equation.active) == 1


@rule_for(p.mul_p, linear=_one_is_active)
def _mul(equation, k, inputs, outputs, memory):
    u, v = inputs
    if equation.inputs[0] == equation.inputs[1]:
        return [convolve_self(u, k)]
    product = multiply(u[0], v[k]) if u.constant else _product(u, v, k)
    return [None if product is None else instantiate(product, equation.out_avals[0])]


def _product(u, v, k):
    return multiply(u[k], v[0]) if v.constant else convolve(u, v, k, 0, k)


@rule_for(p.dot_general_p, p.conv_general_dilated_p, linear=_one_is_active)
def _bilinear(equation, k, inputs, outputs, memory):
    u, v = inputs
    # A fixed operand, such as a weight matrix, leaves one product per order.
    orders = [0] if u.constant else [k] if v.constant else range(k + 1)
    total = None
    for j in orders:
        if u[j] is not None and v[k - j] is not None:
            total = add(total, equation.bind(u[j], v[k - j])[0])
    return [total]


@rule_for(p.div_p, linear=lambda equation: equation.active == (True, False))
def _div(equation, k, inputs, outputs, memory):
    (u, w), (y,) = inputs, outputs
    if w.constant:
        numerator = u[k]
    else:
        numerator = subtract(u[k], convolve(y, w, k, 0, k - 1))
    ratio = quotient(numerator, w[0])
    return [None if ratio is None else instantiate(ratio, equation.out_avals[0])]


@rule_for(p.square_p)
def _square(equation, k, inputs, outputs, memory):
    return [convolve_self(inputs[0], k)]


@rule_for(p.sqrt_p)
def _sqrt(equation, k, inputs, outputs, memory):
    (u,), (y,) = inputs, outputs
    return [quotient(subtract(u[k], convolve_self(y, k, 1)), scale(y[0], 2))]


@rule_for(p.rsqrt_p)
def _rsqrt(equation, k, inputs, outputs, memory):
    # From u y' = -1/2 u' y.
    (u,), (y,) = inputs, outputs
    total = None
    for j in range(1, k + 1):
        total = add(total, scale(multiply(u[j], y[k - j]), 0.5 * j - k))
    return [quotient(divide(total, k), u[0])]


RULES[p.cbrt_p] = from_derivative(lambda x, y: 1 / (3 * y * y))


@rule_for(p.integer_pow_p)
def _integer_pow(equation, k, inputs, outputs, memory):
    return [_integer_power(inputs[0], k, equation.params["y"], memory)]


def _integer_power(u, k, n, memory):
    """Return coefficient k of u**n by products alone, which is exact where u[0] is zero or tiny.

    `memory[k][m]` keeps coefficient k of the power m of the base. The powers are those of binary
    exponentiation, so an order costs about 2 log2(n) convolutions. The base of a negative power is
    1/u: its powers may underflow where those of u would overflow.
    """
    if n == 0:
        return None
    if k == 1:
        base = lax.integer_pow(u[0], -1) if n < 0 else u[0]
        memory[0] = {m: lax.integer_pow(base, m) for m in _chain_of_powers(abs(n))}
    powers = {**memory, k: {}}

    def series(m):
        return [powers[j].get(m) for j in range(k + 1)]

    for m in _chain_of_powers(abs(n)):
        if m == 1:
            base = u[k] if n > 0 else _reciprocal(u, series(1), k)
            powers[k][1] = base
        elif m % 2 == 0:
            powers[k][m] = convolve_self(series(m // 2), k)
        else:
            powers[k][m] = convolve(series(1), series(m - 1), k, 0, k)
    memory[k] = powers[k]
    return memory[k][abs(n)]


def _reciprocal(u, r, k):
    return negate(quotient(convolve(r, u, k, 0, k - 1), u[0]))


def _chain_of_powers(n):
    """Return the powers that lead to n, each of them twice a lower one or one above it."""
    powers = []
    while n > 1:
        powers.append(n)
        n = n // 2 if n % 2 == 0 else n - 1
    return [1, *powers[::-1]]


@rule_for(p.pow_p)
def _pow(equation, k, inputs, outputs, memory):
    u, w = inputs
    if not w.constant:
        return RULES[ANY].step(equation, k, inputs, outputs, memory)
    exponent = _number(w[0])
    if exponent is None or not exponent.is_integer() or abs(exponent) > 2**31:
        return _REAL_POWER.step(equation, k, inputs, outputs, memory)
    return [_integer_power(u, k, int(exponent), memory)]


def _power_slope(x, exponent, y):
    # JAX's own rule is 0 * inf where exponent and base are both zero.
    x, exponent = jnp.broadcast_arrays(x, exponent.astype(x.dtype))
    is_zero = exponent == 0
    below = jnp.where(is_zero, 1, exponent - 1)
    return jnp.where(is_zero, 0, exponent * lax.pow(x, below))


# Order k takes the powers below the exponent, down to exponent - k. A recurrence from u y' = w u' y
# would be shorter, but it divides by u: it and its gradient are 0/0 at a zero base.
_REAL_POWER = from_derivative(_power_slope)


def _number(value) -> float | None:
    """Return the real number that a constant consists of, if it is known while tracing."""
    if isinstance(value, Tracer) or np.ndim(value) != 0 or np.iscomplexobj(value):
        return None
    return float(value)
