"""Elementwise functions by their differential equations.

Order k costs one or two sums of k products. The value at order 0 always comes from the primitive,
and where a slope can be computed without cancellation (the logistic function in saturation, `expm1`
far to the left, `asin` near 1) it is.
"""

import math

from jax import lax
from jax.extend.core import primitives as p

from ..registry import rule_for, RULES
from ..series import (
    add,
    chain,
    convolve_self,
    divide,
    multiply,
    negate,
    quotient,
    scale,
    subtract,
    typed,
)
from .derived import from_derivative


@rule_for(p.exp_p)
def _exp(equation, k, inputs, outputs, memory):
    return [chain(k, inputs[0], outputs[0])]


@rule_for(p.exp2_p)
def _exp2(equation, k, inputs, outputs, memory):
    return [scale(chain(k, inputs[0], outputs[0]), math.log(2))]


@rule_for(p.expm1_p)
def _expm1(equation, k, inputs, outputs, memory):
    # The slope exp(u) has the same coefficients as expm1(u), except for its value.
    (u,), (y,) = inputs, outputs
    if k == 1:
        memory[0] = lax.exp(u[0])
    return [chain(k, u, {0: memory[0]} | {j: y[j] for j in range(1, k)})]


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


@rule_for(p.sin_p)
def _sin(equation, k, inputs, outputs, memory):
    return _circular(k, inputs[0], outputs[0], memory, lax.cos, -1, first=True)


@rule_for(p.cos_p)
def _cos(equation, k, inputs, outputs, memory):
    return _circular(k, inputs[0], outputs[0], memory, lax.sin, -1, first=False)


@rule_for(p.sinh_p)
def _sinh(equation, k, inputs, outputs, memory):
    return _circular(k, inputs[0], outputs[0], memory, lax.cosh, 1, first=True)


@rule_for(p.cosh_p)
def _cosh(equation, k, inputs, outputs, memory):
    return _circular(k, inputs[0], outputs[0], memory, lax.sinh, 1, first=False)


def _circular(k, u, y, memory, partner, sign, *, first):
    """A pair s' = c u', c' = sign s u' of which `y` is one; the other is kept in memory.

    The partner is kept one order behind: the last order needs it only up to k - 1.
    """
    signs = (1, sign) if first else (sign, 1)
    memory[k - 1] = partner(u[0]) if k == 1 else scale(chain(k - 1, u, y), signs[1])
    return [scale(chain(k, u, memory), signs[0])]


@rule_for(p.tanh_p)
def _tanh(equation, k, inputs, outputs, memory):
    # The slope 1 - tanh(u)^2 is 4 s(2u) s(-2u), which keeps its relative accuracy in saturation.
    (u,), (y,) = inputs, outputs
    if k == 1:
        twice = lax.mul(u[0], typed(2, u[0]))
        memory[0] = scale(lax.mul(lax.logistic(twice), lax.logistic(lax.neg(twice))), 4)
    else:
        memory[k - 1] = negate(convolve_self(y, k - 1))
    return [chain(k, u, memory)]


@rule_for(p.logistic_p)
def _logistic(equation, k, inputs, outputs, memory):
    # The slope is y (1 - y), where 1 - y has value s(-u) and moves as -y does.
    (u,), (y,) = inputs, outputs
    if k == 1:
        complement = lax.logistic(lax.neg(u[0]))
        memory[0] = lax.mul(y[0], complement)
        memory[-1] = lax.sub(complement, y[0])
    else:
        m = k - 1
        memory[m] = subtract(multiply(y[m], memory[-1]), convolve_self(y, m, 1))
    return [chain(k, u, memory)]


def _one_minus_square(x):
    return (1 - x) * (1 + x)


RULES[p.tan_p] = from_derivative(lambda x, y: 1 + y * y)
RULES[p.asin_p] = from_derivative(lambda x, y: lax.rsqrt(_one_minus_square(x)))
RULES[p.acos_p] = from_derivative(lambda x, y: -lax.rsqrt(_one_minus_square(x)))
RULES[p.atan_p] = from_derivative(lambda x, y: 1 / (1 + x * x))
RULES[p.asinh_p] = from_derivative(lambda x, y: lax.rsqrt(1 + x * x))
RULES[p.acosh_p] = from_derivative(lambda x, y: lax.rsqrt((x - 1) * (x + 1)))
RULES[p.atanh_p] = from_derivative(lambda x, y: 1 / _one_minus_square(x))
