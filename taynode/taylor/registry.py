"""Which rule advances which primitive, and how a rule of one's own is registered."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from jax.extend.core import Primitive


@dataclasses.dataclass(frozen=True)
class Rule:
    """How the outputs of one equation gain their next coefficient.

    - `step(equation, k, inputs, outputs, memory)` returns coefficient k of each output, an array or
        `None` for a structural zero. `inputs` and `outputs` are `Series`, known up to order k and
        k - 1. All state lives in `memory`, a dictionary of pytrees that is empty at first: inside
        `scan` and `cond` each order is traced anew, and only what is in `memory` is carried over.
    - `linear(equation)`: whether order k reads nothing of lower orders but constants. Loops then
        need not store the operands.
    - `owns_primal`: `step` is called for k = 0 too. Otherwise order 0 is the primitive itself.
    - `activity(equation)`: which outputs move. By default each inexact output of an equation with a
        moving input.
    """

    step: Callable[..., Sequence[Any]]
    linear: Callable[[Any], bool] = lambda equation: False
    owns_primal: bool = False
    activity: Callable[[Any], Sequence[bool]] | None = None


RULES: dict[Primitive, Rule] = {}

# Stands for every primitive that has no rule of its own.
ANY = Primitive("any")

# Primitives whose outputs do not move whatever their inputs do.
ZERO_DERIVATIVE: set[Primitive] = set()

# Primitives that only wrap a jaxpr, by the name of the parameter that holds it.
INLINED: dict[Primitive, str] = {}


def rule_for(*primitives: Primitive, **options: Any) -> Callable[[Callable], Callable]:
    """Decorator: the function is the `step` of a `Rule` for each of the primitives."""

    def register(step):
        for primitive in primitives:
            RULES[primitive] = Rule(step, **options)
        return step

    return register
