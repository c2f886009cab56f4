"""Rules that follow from a first derivative.

If y = f(x) and y' = g(x, y, x'), then `k y_[k] = g_[k-1]`: coefficient k - 1 of g gives coefficient
k of y. The value y is an input of g, so nothing of f is computed again. There are two sources of g:

- JAX's JVP rule of the primitive. It serves primitives without a rule of their own and `custom_jvp`
  functions. The conventions of their authors, such as the derivative of relu at 0, thus hold at
  every order.
- a formula for dy/dx in terms of x and y, for elementwise functions.
"""

from collections.abc import Callable
from typing import Any

import jax

from ..errors import no_derivative
from ..expansion import Expansion
from ..program import Equation, is_inexact, Program
from ..registry import ANY, Rule, RULES
from ..series import divide, instantiate, scale


def _from_jvp(equation: Equation) -> Program:
    """Return the tangent of an equation as a program of (values, tangents, outputs)."""
    active = equation.active
    active_avals = [a for a, is_active in zip(equation.in_avals, active, strict=True) if is_active]
    outputs = [i for i, aval in enumerate(equation.out_avals) if is_inexact(aval)]
    num_outputs = len(equation.out_avals)

    def tangent(values, tangents):
        def fun(*varied):
            return equation.bind(*_merge(active, varied, values))

        varied = [x for x, is_active in zip(values, active, strict=True) if is_active]
        primals_out, tangents_out = jax.jvp(fun, tuple(varied), tuple(tangents))
        return primals_out, [tangents_out[i] for i in outputs]

    try:
        closed = jax.make_jaxpr(tangent)(list(equation.in_avals), active_avals)
    except Exception as error:
        raise no_derivative(equation, error) from error
    return Program(
        closed,
        list(active) + [True] * len(active_avals),
        known=range(num_outputs),
        wanted=range(num_outputs, num_outputs + len(outputs)),
        origin=equation,
        effects=False,
    )


def _merge(active, of_active, of_all):
    """The next of `of_active` where active, else the entry of `of_all`."""
    of_active = iter(of_active)
    return [
        next(of_active) if is_active else x for is_active, x in zip(active, of_all, strict=True)
    ]


def _is_linear(equation: Equation, program: Program) -> bool:
    """Whether the tangent is the primitive itself, applied to tangents in place of values."""
    if len(program.equations) != 1:
        return False
    (inner,) = program.equations
    num_values = len(equation.in_avals)
    values, tangents = program.inputs[:num_values], program.inputs[num_values:]
    expected = _merge(equation.active, tangents, values)
    return (
        inner.primitive is equation.primitive
        and list(inner.inputs) == expected
        and list(inner.outputs) == program.outputs
        and inner.params == equation.params
    )


def _operands(equation: Equation, k: int, inputs: list[Any]) -> list[Any]:
    """Coefficient k of active inputs, the values of the others."""
    return [
        instantiate(u[k], aval) if is_active else u[0]
        for u, aval, is_active in zip(inputs, equation.in_avals, equation.active, strict=True)
    ]


def _step(build: Callable[[Equation], Program]):
    def step(equation, k, inputs, outputs, memory):
        program = equation.derive("tangent", lambda: build(equation))
        if equation.derive("linear", lambda: _is_linear(equation, program)):
            return equation.bind(*_operands(equation, k, inputs))
        num_values, num_outputs = len(inputs), len(outputs)
        slots = program.inputs
        shared = dict(zip(slots[:num_values], inputs, strict=True))
        shared |= dict(zip(slots[len(slots) - num_outputs :], outputs, strict=True))
        tangents = [
            instantiate(u[1], aval) if k == 1 else scale(u[k], k)
            for u, aval, is_active in zip(inputs, equation.in_avals, equation.active, strict=True)
            if is_active
        ]
        expansion = Expansion.restore(program, [memory[j] for j in range(1, k)], shared)
        rates = expansion.advance([None] * num_values + tangents + [None] * num_outputs)
        memory[k] = expansion.record()
        rates = iter(rates)
        return [divide(next(rates), k) if is_inexact(aval) else None for aval in equation.out_avals]

    return step


RULES[ANY] = Rule(_step(_from_jvp))


def from_derivative(slope: Callable[..., Any]) -> Rule:
    """Return the rule of an elementwise function y of x from its derivative.

    `slope(x, y)` is dy/dx. With further, constant arguments it is `slope(x, *rest, y)`.
    """

    def build(equation):
        x, *rest = equation.in_avals
        (y,) = equation.out_avals
        closed = jax.make_jaxpr(lambda x, rest, t, y: t * slope(x, *rest, y))(x, rest, x, y)
        return Program(closed, [True, *(False for _ in rest), True, True], origin=equation)

    return Rule(_step(build))
