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
    quotient,
    scale,
    Series,
    subtract,
)
from .derived import from_derivative


def _one_moves(equation: Equation) -> bool:
    return sum(equation.active) == 1


@rule_for(p.mul_p, linear=_one_moves)
def _mul(equation, k, inputs, outputs, memory):
    u, v = inputs
    if equation.inputs[0] == equation.inputs[1]:
        return [convolve_self(u, k)]
    product = multiply(u[0], v[k]) if u.constant else _product(u, v, k)
    return [None if product is None else instantiate(product, equation.out_avals[0])]


def _product(u, v, k):
    return multiply(u[k], v[0]) if v.constant else convolve(u, v, k, 0, k)


@rule_for(p.dot_general_p, p.conv_general_dilated_p, linear=_one_moves)
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


def power_step(u: Series, y: Series, k: int, exponent: float):
    """Coefficient k of y = u**exponent from u y' = exponent u' y. Needs u[0] != 0."""
    total = None
    for j in range(1, k + 1):
        weight = exponent * j - (k - j)
        if weight:
            total = add(total, scale(multiply(u[j], y[k - j]), weight))
    return quotient(divide(total, k), u[0])


@rule_for(p.rsqrt_p)
def _rsqrt(equation, k, inputs, outputs, memory):
    return [power_step(inputs[0], outputs[0], k, -0.5)]


@rule_for(p.cbrt_p)
def _cbrt(equation, k, inputs, outputs, memory):
    return [power_step(inputs[0], outputs[0], k, 1 / 3)]


@rule_for(p.integer_pow_p)
def _integer_pow(equation, k, inputs, outputs, memory):
    return [_integer_power(inputs[0], outputs[0], k, equation.params["y"], memory)]


def _integer_power(u, y, k, n, memory):
    """Coefficient k of y = u**n by products alone, which is exact where u[0] is zero or tiny.

    `memory[k][m]` keeps coefficient k of the intermediate power m; the powers are those of
    binary exponentiation, so that an order costs about 2 log2(n) convolutions.
    """
    if n == 0:
        return None
    if n < 0:
        # y u**-n = 1, with the positive power kept in memory.
        if k == 1:
            memory[0] = _power_values(u[0], -n)
        memory[k] = _advance_powers(u, k, -n, memory)
        w = _kept_series(u, -n, k, memory)
        return quotient(scale(convolve(y, w, k, 0, k - 1), -1), w[0])
    if k == 1:
        memory[0] = _power_values(u[0], n)
    memory[k] = _advance_powers(u, k, n, memory)
    return memory[k][n] if n > 1 else u[k]


def _chain_of_powers(n):
    """The powers on the way to n, each the square of, or one above, a lower one."""
    powers = []
    while n > 1:
        powers.append(n)
        n = n // 2 if n % 2 == 0 else n - 1
    return powers[::-1]


def _power_values(x, n):
    return {m: lax.integer_pow(x, m) for m in _chain_of_powers(n)}


def _kept_series(u, m, k, memory):
    """The series of u**m, up to order k, from memory."""
    return u if m == 1 else [memory[j].get(m) for j in range(k + 1)]


def _advance_powers(u, k, n, memory):
    new = {}
    memory = {**memory, k: new}
    for m in _chain_of_powers(n):
        if m % 2 == 0:
            new[m] = convolve_self(_kept_series(u, m // 2, k, memory), k)
        else:
            new[m] = convolve(u, _kept_series(u, m - 1, k, memory), k, 0, k)
    return new


@rule_for(p.pow_p)
def _pow(equation, k, inputs, outputs, memory):
    (u, w), (y,) = inputs, outputs
    if not w.constant:
        return RULES[ANY].step(equation, k, inputs, outputs, memory)
    exponent = _number(w[0])
    if exponent is None:
        return _POWER_OF_ARRAYS.step(equation, k, inputs, outputs, memory)
    if exponent.is_integer() and abs(exponent) < 2**31:
        return [_integer_power(u, y, k, int(exponent), memory)]
    value = power_step(u, y, k, exponent)
    if value is None or k > exponent:
        return [value]
    # At a zero base the first derivatives of a large power vanish, where the recurrence is 0/0.
    at_zero = lax.eq(u[0], lax.full_like(u[0], 0))
    return [lax.select(at_zero, lax.full_like(value, 0), value)]


def _power_slope(x, exponent, y):
    # JAX's own rule is 0 * inf where exponent and base are both zero.
    x, exponent = jnp.broadcast_arrays(x, exponent.astype(x.dtype))
    is_zero = exponent == 0
    below = jnp.where(is_zero, 1, exponent - 1)
    return jnp.where(is_zero, 0, exponent * lax.pow(x, below))


_POWER_OF_ARRAYS = from_derivative(_power_slope)


def _number(value) -> float | None:
    """The real number that a constant consists of, if that is known while tracing."""
    if isinstance(value, Tracer) or np.ndim(value) != 0 or np.iscomplexobj(value):
        return None
    return float(value)
