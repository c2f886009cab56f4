"""A function's jaxpr, made ready for sweeping: flat, pruned, and split into fixed and moving parts.

`jit`, `checkpoint` and other plain calls are inlined, variables become numbered slots, and
equations nobody needs are dropped. A slot is *active* if it moves along the curve; everything else
is evaluated once, at order 0.
"""

import functools as ft
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from .errors import no_derivative
from .jaxprs import bind, open_jaxpr
from .registry import ANY, INLINED, Rule, RULES, ZERO_DERIVATIVE


T = TypeVar("T")


class Equation:
    """One primitive applied to slots, with the static facts that its rule needs."""

    def __init__(
        self,
        eqn: JaxprEqn,
        inputs: Sequence[int],
        active: Sequence[bool],
        callers: Sequence[JaxprEqn] = (),
        origin: "Equation | None" = None,
    ):
        self.eqn = eqn
        # Where it comes from, for messages: the calls it was inlined from, innermost first, and
        # the equation that it is part of the derivative of.
        self.callers = tuple(callers)
        self.origin = origin
        self.primitive = eqn.primitive
        self.params = eqn.params
        self.inputs = tuple(inputs)
        self.outputs: tuple[int, ...] = ()
        self.active = tuple(active)
        self.in_avals = [v.aval for v in eqn.invars]
        self.out_avals = [v.aval for v in eqn.outvars]
        self._derived: dict[str, Any] = {}

    def derive(self, name: str, build: Callable[[], T]) -> T:
        """What a rule derives from the static facts, such as the program of a loop, built once."""
        if name not in self._derived:
            self._derived[name] = build()
        return self._derived[name]

    @ft.cached_property
    def rule(self) -> Rule:
        """The rule registered for the primitive, or else its derivative rule in JAX."""
        return RULES.get(self.primitive) or RULES[ANY]

    @ft.cached_property
    def output_activity(self) -> list[bool]:
        """Which outputs move along the curve."""
        if not any(self.active) or self.primitive in ZERO_DERIVATIVE:
            return [False] * len(self.out_avals)
        moving = [is_inexact(aval) for aval in self.out_avals]
        if self.rule.activity is None:
            return moving
        precise = self.rule.activity(self)
        return [a and b for a, b in zip(moving, precise, strict=True)]

    def bind(self, *values: Any, **changes: Any) -> list[Any]:
        """Apply the primitive itself; `changes` override its parameters."""
        return bind(self.eqn, values, changes)


class Program:
    """A flat list of equations between slots.

    **Arguments:**

    - `jaxpr`: what to evaluate, with its constants.
    - `active`: which of the inputs move.
    - `known`: indices of outputs whose series the caller supplies; they become further inputs, all
        of them active if inexact, and the equations that would compute them are dropped.
    - `wanted`: indices of the outputs to keep; all by default.
    - `moving`: indices of the outputs (among those kept) that are needed above order 0; all by
        default.
    - `origin`: the equation of another program that this one is the derivative of, for messages.
    - `effects`: whether side effects happen. They should not where the same values were computed
        before, with theirs.
    """

    def __init__(
        self,
        jaxpr: Any,
        active: Sequence[bool],
        *,
        known: Sequence[int] = (),
        wanted: Sequence[int] | None = None,
        moving: Sequence[int] | None = None,
        origin: Equation | None = None,
        effects: bool = True,
    ):
        self.origin = origin
        self.effects = effects
        self.active: list[bool] = []
        self.avals: list[Any] = []
        self.constants: dict[int, Any] = {}
        self.equations: list[Equation] = []
        self.inputs: list[int] = []

        jaxpr, consts = open_jaxpr(jaxpr)
        env = {
            var: self._constant(value, var.aval)
            for var, value in zip(jaxpr.constvars, consts, strict=True)
        }
        for var, is_active in zip(jaxpr.invars, active, strict=True):
            env[var] = self._new_slot(var.aval, is_active and is_inexact(var.aval))
            self.inputs.append(env[var])
        supplied: dict[Any, int] = {}
        for i in known:
            var = jaxpr.outvars[i]
            slot = self._new_slot(var.aval, is_inexact(var.aval))
            self.inputs.append(slot)
            if not isinstance(var, Literal) and var not in env:
                supplied[var] = slot
        outputs = self._inline(jaxpr, env, supplied)
        self.outputs = outputs if wanted is None else [outputs[i] for i in wanted]
        every = range(len(self.outputs))
        self.moving_outputs = set(every if moving is None else moving)
        self._prune()

    def _new_slot(self, aval: Any, active: bool) -> int:
        self.avals.append(aval)
        self.active.append(active)
        return len(self.avals) - 1

    def _constant(self, value: Any, aval: Any) -> int:
        slot = self._new_slot(aval, False)
        self.constants[slot] = value
        return slot

    def _inline(
        self,
        jaxpr: Jaxpr,
        env: dict[Any, int],
        supplied: Mapping[Any, int],
        callers: tuple[JaxprEqn, ...] = (),
    ) -> list[int]:
        env = {**env, **supplied}

        def read(atom):
            return self._constant(atom.val, atom.aval) if isinstance(atom, Literal) else env[atom]

        for eqn in jaxpr.eqns:
            inputs = [read(atom) for atom in eqn.invars]
            active = [self.active[slot] for slot in inputs]
            parameter = INLINED.get(eqn.primitive)
            if parameter is not None and any(active):
                outputs = self._inline_call(eqn, eqn.params[parameter], inputs, supplied, callers)
            else:
                outputs = self._add_equation(Equation(eqn, inputs, active, callers, self.origin))
            for var, slot in zip(eqn.outvars, outputs, strict=True):
                env.setdefault(var, slot)
        return [read(atom) for atom in jaxpr.outvars]

    def _inline_call(self, eqn: JaxprEqn, inner: Any, inputs, supplied, callers) -> list[int]:
        jaxpr, consts = open_jaxpr(inner)
        env = dict(zip(jaxpr.invars, inputs, strict=True))
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            env[var] = self._constant(value, var.aval)
        inner_supplied = {
            inner_var: supplied[var]
            for inner_var, var in zip(jaxpr.outvars, eqn.outvars, strict=True)
            if var in supplied and not isinstance(inner_var, Literal) and inner_var not in env
        }
        return self._inline(jaxpr, env, inner_supplied, (eqn, *callers))

    def _add_equation(self, equation: Equation) -> list[int]:
        if any(equation.active) and any(hasattr(a, "inner_aval") for a in equation.in_avals):
            # What is written to a mutable array would be read again without its derivative.
            raise no_derivative(equation, TypeError("mutable arrays are not differentiated"))
        slots = [
            self._new_slot(aval, active)
            for aval, active in zip(equation.out_avals, equation.output_activity, strict=True)
        ]
        equation.outputs = tuple(slots)
        self.equations.append(equation)
        return slots

    def _prune(self) -> None:
        """Keep what the outputs need, and tell what they need above order 0."""
        needed = set(self.outputs)
        moving = [self.outputs[i] for i in self.moving_outputs]
        needed_above = {slot for slot in moving if self.active[slot]}
        kept = []
        for equation in reversed(self.equations):
            above = any(slot in needed_above for slot in equation.outputs)
            effects = self.effects and equation.eqn.effects
            if not (above or effects or needed.intersection(equation.outputs)):
                continue
            kept.append(equation)
            needed.update(equation.inputs)
            if above:
                needed_above.update(s for s in equation.inputs if self.active[s])
        self.equations = kept[::-1]
        # Equations that go on above order 0, by position.
        self.moving = [
            i for i, e in enumerate(self.equations) if not needed_above.isdisjoint(e.outputs)
        ]
        # Inputs whose coefficients above order 0 are read.
        self.moving_inputs = [slot in needed_above for slot in self.inputs]
        self.constants = {s: v for s, v in self.constants.items() if s in needed}

    @ft.cached_property
    def remembered(self) -> list[int]:
        """The slots whose lower orders are read again when a higher order is computed."""
        slots: set[int] = set()
        for i in self.moving:
            equation = self.equations[i]
            if equation.rule.linear(equation):
                slots.update(s for s in equation.inputs if not self.active[s])
            else:
                slots.update(equation.inputs)
                slots.update(equation.outputs)
        return sorted(slots - self.constants.keys())

    def fixed_by(self, inputs: Sequence[int]) -> list[int]:
        """Equations (by position) that depend on nothing but constants and these input slots."""
        fixed = {*inputs, *self.constants}
        positions = []
        for i, equation in enumerate(self.equations):
            if not equation.eqn.effects and fixed.issuperset(equation.inputs):
                if not any(self.active[s] for s in equation.outputs):
                    fixed.update(equation.outputs)
                    positions.append(i)
        return positions

    @property
    def output_activity(self) -> list[bool]:
        """Which outputs move."""
        return [self.active[slot] for slot in self.outputs]


def is_inexact(aval: Any) -> bool:
    """Whether values of this type have derivatives."""
    return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, jnp.inexact)
