"""Which rule advances which primitive."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from jax.extend.core import Primitive


@dataclasses.dataclass(frozen=True)
class Rule:
    """How the outputs of one equation gain their next coefficient.

    - `step(equation, k, inputs, outputs, memory)` returns coefficient k of each output, an array or
        `None` for a structural zero. `inputs` and `outputs` are `Series`, known up to orders k and
        k - 1. `memory` is a dictionary of pytrees, empty at first. A rule keeps all its state
        there: inside `scan` and `cond` each order is traced on its own, and only `memory` is
        carried from one order to the next.
    - `linear(equation)`: whether order k reads nothing of lower orders but constants. Loops do not
        store the operands of such an equation.
    - `owns_primal`: whether `step` is called for k = 0 too. If not, order 0 is the primitive
        itself.
    - `activity(equation)`: which outputs are active. By default, these are all inexact outputs of
        an equation with an active input.
    - `expanded_inputs(equation)`: which inputs are read above order 0 by the outputs that are
        expanded. By default, these are all active inputs.
    """

    step: Callable[..., Sequence[Any]]
    linear: Callable[[Any], bool] = lambda equation: False
    owns_primal: bool = False
    activity: Callable[[Any], Sequence[bool]] | None = None
    expanded_inputs: Callable[[Any], list[bool]] | None = None


RULES: dict[Primitive, Rule] = {}

# The key of the rule for every primitive that has no rule of its own.
ANY = Primitive("any")

# Primitives whose outputs are constant along any curve.
ZERO_DERIVATIVE: set[Primitive] = set()

# Primitives that only call a jaxpr, with the name of the parameter that holds it.
INLINED: dict[Primitive, str] = {}


def rule_for(*primitives: Primitive, **options: Any) -> Callable[[Callable], Callable]:
    """Decorator that makes a function the `step` of a `Rule` for each of the primitives."""

    def register(step):
        for primitive in primitives:
            RULES[primitive] = Rule(step, **options)
        return step

    return register
