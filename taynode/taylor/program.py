"""A function's jaxpr, prepared for its Taylor expansion.

`jit` and other plain calls are inlined, variables become numbered slots, and equations that no
output needs are dropped.

A slot is *active* if its value moves along the curve. A slot is *expanded* if it is active and an
output needs its coefficients above order 0. Everything else is evaluated once, at order 0.
"""

import functools as ft
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

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
        # For messages: the calls that the equation was inlined from, innermost first, and the
        # equation whose derivative it is a part of.
        self.callers = tuple(callers)
        self.origin = origin
        self.primitive = eqn.primitive
        self.params = eqn.params
        self.inputs = tuple(inputs)
        self.outputs: tuple[int, ...] = ()
        # Positions of the outputs that are expanded; the program sets them when it is complete.
        self.expanded_outputs: tuple[int, ...] = ()
        self.active = tuple(active)
        self.in_avals = [v.aval for v in eqn.invars]
        self.out_avals = [v.aval for v in eqn.outvars]
        self._derived: dict[str, Any] = {}

    def derive(self, name: str, build: Callable[[], T]) -> T:
        """Build something from static facts once, such as the program of a loop, and cache it."""
        if name not in self._derived:
            self._derived[name] = build()
        return self._derived[name]

    @ft.cached_property
    def rule(self) -> Rule:
        """The rule of the primitive; without one of its own, the rule that uses its JVP rule."""
        return RULES.get(self.primitive) or RULES[ANY]

    @ft.cached_property
    def output_activity(self) -> list[bool]:
        """Which outputs are active."""
        if not any(self.active) or self.primitive in ZERO_DERIVATIVE:
            return [False] * len(self.out_avals)
        inexact = [is_inexact(aval) for aval in self.out_avals]
        if self.rule.activity is None:
            return inexact
        precise = self.rule.activity(self)
        return [a and b for a, b in zip(inexact, precise, strict=True)]

    @property
    def expanded_inputs(self) -> list[bool]:
        """Which inputs the expanded outputs read above order 0."""
        rule = self.rule.expanded_inputs
        return list(self.active) if rule is None else rule(self)

    def bind(self, *values: Any, **changes: Any) -> list[Any]:
        """Apply the primitive itself; `changes` override its parameters."""
        return bind(self.eqn, values, changes)


class Program:
    """A flat list of equations between slots.

    **Arguments:**

    - `jaxpr`: the jaxpr, closed or without constants.
    - `active`: which of its inputs are active.
    - `known`: indices of outputs whose series the caller supplies. They become further inputs,
        active if they are inexact, and the equations that would compute them are dropped.
    - `wanted`: indices of the outputs to keep; all by default.
    - `expand`: indices of the outputs (among those kept) to expand; all by default.
    - `origin`: the equation whose derivative this program is, for messages.
    - `effects`: whether side effects happen. Pass `False` for a program that computes values again,
        since their effects have happened already.
    """

    def __init__(
        self,
        jaxpr: Any,
        active: Sequence[bool],
        *,
        known: Sequence[int] = (),
        wanted: Sequence[int] | None = None,
        expand: Sequence[int] | None = None,
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
        supplied: dict[Var, int] = {}
        for i in known:
            var = jaxpr.outvars[i]
            slot = self._new_slot(var.aval, is_inexact(var.aval))
            self.inputs.append(slot)
            if not isinstance(var, Literal) and var not in env:
                supplied[var] = slot
        outputs = self._inline(jaxpr, env, supplied)
        self.outputs = outputs if wanted is None else [outputs[i] for i in wanted]
        self.expanded_outputs = set(range(len(self.outputs)) if expand is None else expand)
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
        env: dict[Var, int],
        supplied: Mapping[Var, int],
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
            # A value that is written to a mutable array would be read without its derivative.
            raise no_derivative(equation, TypeError("mutable arrays are not differentiated"))
        slots = [
            self._new_slot(aval, active)
            for aval, active in zip(equation.out_avals, equation.output_activity, strict=True)
        ]
        equation.outputs = tuple(slots)
        self.equations.append(equation)
        return slots

    def _prune(self) -> None:
        """Keep the equations that the outputs need, and decide which of them are expanded."""
        needed = set(self.outputs)
        expanded = {self.outputs[i] for i in self.expanded_outputs}
        expanded = {slot for slot in expanded if self.active[slot]}
        kept = []
        for equation in reversed(self.equations):
            equation.expanded_outputs = tuple(
                i for i, slot in enumerate(equation.outputs) if slot in expanded
            )
            effects = self.effects and equation.eqn.effects
            if not (effects or needed.intersection(equation.outputs)):
                continue
            kept.append(equation)
            needed.update(equation.inputs)
            if equation.expanded_outputs:
                reads = zip(equation.inputs, equation.expanded_inputs, strict=True)
                expanded.update(slot for slot, is_read in reads if is_read)
        self.equations = kept[::-1]
        # Positions of the equations that are advanced above order 0.
        self.expanded = [i for i, e in enumerate(self.equations) if e.expanded_outputs]
        self.expanded_inputs = [slot in expanded for slot in self.inputs]
        self.constants = {s: v for s, v in self.constants.items() if s in needed}

    @ft.cached_property
    def remembered(self) -> list[int]:
        """The slots whose lower orders are read again when a higher order is computed."""
        slots: set[int] = set()
        for i in self.expanded:
            equation = self.equations[i]
            if equation.rule.linear(equation):
                slots.update(s for s in equation.inputs if not self.active[s])
            else:
                slots.update(equation.inputs)
                slots.update(equation.outputs)
        return sorted(slots - self.constants.keys())

    def fixed_by(self, inputs: Sequence[int]) -> list[int]:
        """Positions of the equations that depend on constants and these input slots alone."""
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
        """Which outputs are active."""
        return [self.active[slot] for slot in self.outputs]


def is_inexact(aval: Any) -> bool:
    """Whether values of this type have derivatives."""
    return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, jnp.inexact)
