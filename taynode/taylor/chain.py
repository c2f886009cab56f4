"""The chain rule for series: y = f(u) has y' = f'(u) u'.

With s = f'(u) this gives `k y_k = sum over j of j u_j s_(k-j)`. The derivative of one coefficient
with respect to another has a closed form, dy_k/du_j = s_(k-j), so the reverse pass needs only the
coefficients of s. This takes half the work and a third of the memory of differentiating
through the recurrences.
"""

import functools as ft
from collections.abc import Callable, Sequence
from typing import Any

import jax

from .registry import Rule
from .series import add, Coefficient, divide, multiply, scale, Series


Coefficients = Series | Sequence[Any]
# `slope(m, u, y)` is coefficient m of s, from coefficients up to m of u and y = f(u).
Slope = Callable[[int, Coefficients, Coefficients], Coefficient]


def chain(k: int, u: Coefficients, slopes: Coefficients) -> Coefficient:
    """Return coefficient k of y where y' = s u', from the coefficients of u and s.

    The term j = k needs no factor, so order 1 costs a single product.
    """
    total = None
    for j in range(1, k):
        total = add(total, multiply(scale(u[j], j), slopes[k - j]))
    return add(divide(total, k), multiply(u[k], slopes[0]))


def from_slope(slope: Slope) -> Rule:
    """Return the rule of an elementwise function from the coefficients of its derivative."""

    def step(equation, k, inputs, outputs, memory):
        (u,), (y,) = inputs, outputs
        memory[k - 1] = slope(k - 1, u, y)
        u, y = [u[j] for j in range(k + 1)], [y[j] for j in range(k)]
        return [_coefficient(slope, k, u, y, [memory[j] for j in range(k)])]

    return Rule(step)


@ft.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _coefficient(slope, k, u, y, slopes):
    return chain(k, u, slopes)


@_coefficient.defjvp
def _coefficient_jvp(slope, k, primals, tangents):
    u, y, slopes = primals
    du, _, _ = tangents
    value = _coefficient(slope, k, u, y, slopes)
    if value is None:
        return None, None
    slopes = [*slopes, slope(k, u, [*y, value])]
    tangent = None
    for j in range(k + 1):
        tangent = add(tangent, multiply(slopes[k - j], du[j]))
    return value, tangent
