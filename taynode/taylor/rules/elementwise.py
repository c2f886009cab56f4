"""Elementwise functions by their differential equations.

Order k costs one or two sums of k products. The value at order 0 always comes from the primitive.
Slopes are computed without cancellation where that is possible: for the logistic function in
saturation, `expm1` of large negative numbers, `asin` near 1.
"""

import math

from jax import lax
from jax.extend.core import primitives as p

from ..chain import chain, from_slope
from ..registry import rule_for, RULES
from ..series import add, convolve_self, divide, multiply, negate, quotient, scale, subtract, typed
from .derived import from_derivative


def _slope_of_expm1(m, u, y):
    # exp(u) has the coefficients of expm1(u), except for its value.
    return lax.exp(u[0]) if m == 0 else y[m]


def _slope_of_tanh(m, u, y):
    # 1 - tanh(u)^2 is 4 s(2u) s(-2u), which keeps its relative accuracy in saturation.
    if m > 0:
        return negate(convolve_self(y, m))
    twice = lax.mul(u[0], typed(2, u[0]))
    return scale(lax.mul(lax.logistic(twice), lax.logistic(lax.neg(twice))), 4)


def _slope_of_logistic(m, u, y):
    # y (1 - y), where 1 - y has value s(-u) and moves as -y does.
    if m == 0:
        return lax.mul(y[0], lax.logistic(lax.neg(u[0])))
    imbalance = lax.sub(lax.full_like(y[0], 1), lax.mul(y[0], typed(2, y[0])))
    return subtract(multiply(y[m], imbalance), convolve_self(y, m, 1))


def _circular(partner, sign_of_slope, sign_back):
    """The slope of y, up to a sign, is its partner, whose slope is y up to another sign."""

    def slope(m, u, y):
        value = partner(u[0]) if m == 0 else scale(chain(m, u, y), sign_back)
        return scale(value, sign_of_slope)

    return from_slope(slope)


RULES[p.exp_p] = from_slope(lambda m, u, y: y[m])
RULES[p.exp2_p] = from_slope(lambda m, u, y: scale(y[m], math.log(2)))
RULES[p.expm1_p] = from_slope(_slope_of_expm1)
RULES[p.tanh_p] = from_slope(_slope_of_tanh)
RULES[p.logistic_p] = from_slope(_slope_of_logistic)
RULES[p.sin_p] = _circular(lax.cos, 1, -1)
RULES[p.cos_p] = _circular(lax.sin, -1, 1)
RULES[p.sinh_p] = _circular(lax.cosh, 1, 1)
RULES[p.cosh_p] = _circular(lax.sinh, 1, 1)


@rule_for(p.log_p)
def _log(equation, k, inputs, outputs, memory):
    (u,), (y,) = inputs, outputs
    return [_logarithm(u, y, k, u[0])]


@rule_for(p.log1p_p)
def _log1p(equation, k, inputs, outputs, memory):
    (u,), (y,) = inputs, outputs
    if k == 1:
        memory[0] = lax.add(u[0], lax.full_like(u[0], 1))
    return [_logarithm(u, y, k, memory[0])]


def _logarithm(u, y, k, argument):
    """From argument * y' = u', where `argument` moves as u does."""
    total = None
    for j in range(1, k):
        total = add(total, scale(multiply(y[j], u[k - j]), j))
    return quotient(subtract(u[k], divide(total, k)), argument)


def _one_minus_square(x):
    return (1 - x) * (1 + x)


RULES[p.tan_p] = from_derivative(lambda x, y: 1 + y * y)
RULES[p.asin_p] = from_derivative(lambda x, y: lax.rsqrt(_one_minus_square(x)))
RULES[p.acos_p] = from_derivative(lambda x, y: -lax.rsqrt(_one_minus_square(x)))
RULES[p.atan_p] = from_derivative(lambda x, y: 1 / (1 + x * x))
RULES[p.asinh_p] = from_derivative(lambda x, y: lax.rsqrt(1 + x * x))
RULES[p.acosh_p] = from_derivative(lambda x, y: lax.rsqrt((x - 1) * (x + 1)))
RULES[p.atanh_p] = from_derivative(lambda x, y: 1 / _one_minus_square(x))
