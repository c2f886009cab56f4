"""Rules that follow from a first derivative.

If y = f(x) and y' = g(x, y, x'), then `k y_[k] = g_[k-1]`: sweeping g one order behind gives the
next coefficient of y. In g the value y is an input, so nothing of f is computed again and the
recursion is well founded. Two sources of g:

- JAX's own JVP rule of the primitive, whatever it is. This is how primitives without a rule of
  their own and `custom_jvp` functions are handled, and why the conventions of their authors, such
  as the derivative of relu at 0, hold at every order.
- a formula for dy/dx in terms of x and y, for elementwise functions.
"""

from collections.abc import Callable
from typing import Any

import jax

from ..advance import Sweep
from ..errors import no_derivative
from ..program import Equation, is_inexact, Program
from ..registry import ANY, Rule, RULES
from ..series import divide, instantiate, scale


def _from_jvp(equation: Equation) -> Program:
    """The tangent of an equation as a program of (values, tangents, outputs)."""
    active = equation.active
    moving_avals = [a for a, moves in zip(equation.in_avals, active, strict=True) if moves]
    outputs = [i for i, aval in enumerate(equation.out_avals) if is_inexact(aval)]
    num_outputs = len(equation.out_avals)

    def tangent(values, tangents):
        def fun(*moving):
            moving = iter(moving)
            merged = [next(moving) if moves else x for x, moves in zip(values, active, strict=True)]
            return equation.bind(*merged)

        moving = [x for x, moves in zip(values, active, strict=True) if moves]
        primals_out, tangents_out = jax.jvp(fun, tuple(moving), tuple(tangents))
        return primals_out, [tangents_out[i] for i in outputs]

    try:
        closed = jax.make_jaxpr(tangent)(list(equation.in_avals), moving_avals)
    except Exception as error:
        raise no_derivative(equation, error) from error
    return Program(
        closed,
        list(active) + [True] * len(moving_avals),
        known=range(num_outputs),
        wanted=range(num_outputs, num_outputs + len(outputs)),
        origin=equation,
        effects=False,
    )


def _is_linear(equation: Equation, program: Program) -> bool:
    """Whether the tangent is the primitive itself, applied to tangents in place of values."""
    if len(program.equations) != 1:
        return False
    (inner,) = program.equations
    num_values = len(equation.in_avals)
    values, tangents = program.inputs[:num_values], iter(program.inputs[num_values:])
    expected = [
        next(tangents) if moves else x for x, moves in zip(values, equation.active, strict=True)
    ]
    return (
        inner.primitive is equation.primitive
        and list(inner.inputs) == expected
        and list(inner.outputs) == program.outputs
        and inner.params == equation.params
    )


def _operands(equation: Equation, k: int, inputs: list[Any]) -> list[Any]:
    """Coefficient k of what moves, the value of what does not."""
    return [
        instantiate(u[k], aval) if moves else u[0]
        for u, aval, moves in zip(inputs, equation.in_avals, equation.active, strict=True)
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
            for u, aval, moves in zip(inputs, equation.in_avals, equation.active, strict=True)
            if moves
        ]
        sweep = Sweep.restore(program, [memory[j] for j in range(1, k)], shared)
        rates = sweep.advance([None] * num_values + tangents + [None] * num_outputs)
        memory[k] = sweep.record()
        rates = iter(rates)
        return [divide(next(rates), k) if is_inexact(aval) else None for aval in equation.out_avals]

    return step


RULES[ANY] = Rule(_step(_from_jvp))


def from_derivative(slope: Callable[..., Any]) -> Rule:
    """The rule of an elementwise function y of x from its derivative.

    `slope(x, y)` is dy/dx; if the function has further, constant arguments, `slope(x, *rest, y)`.
    """

    def build(equation):
        x, *rest = equation.in_avals
        (y,) = equation.out_avals
        closed = jax.make_jaxpr(lambda x, rest, t, y: t * slope(x, *rest, y))(x, rest, x, y)
        return Program(closed, [True, *(False for _ in rest), True, True], origin=equation)

    return Rule(_step(build))
