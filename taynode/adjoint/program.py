"""A function as a jaxpr, and the flow of values and of derivatives through it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.core
import jax.lax as lax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from ..taylor.jaxprs import bind
from .private import UNREAD_OPERAND


# Primitives whose derivative does not depend on the values of their operands, from this one on.
LINEAR_FROM = {
    **dict.fromkeys(("add", "add_any", "sub", "neg", "copy", "broadcast_in_dim", "reshape"), 0),
    **dict.fromkeys(("select_n", "select_if_vmap"), 1),
}


class Program(NamedTuple):
    """A function of arrays that returns a list of arrays.

    - `jaxpr`: the function.
    - `constants`: the values of its constants, such as the tableau of a solver. What the function
        closes over and what may have a derivative is an input instead, see `trace`.
    """

    jaxpr: Jaxpr
    constants: Sequence[Any]

    def __call__(self, *values: Any) -> list[jax.Array]:
        """Evaluate the function."""
        return jax.core.eval_jaxpr(self.jaxpr, self.constants, *values)

    def named(self, name: str) -> list[Var]:
        """The variables that have this name, see `names`."""
        return [eqn.outvars[0] for eqn in self._eqns(name)]

    def inputs_named(self, name: str) -> list[int] | None:
        """The inputs that have this name; `None` if other values have it, too."""
        given = [eqn.invars[0] for eqn in self._eqns(name)]
        places: dict[Any, int] = {v: i for i, v in enumerate(self.jaxpr.invars)}
        return [places[v] for v in given] if all(v in places for v in given) else None

    def without(self, name: str) -> "Program":
        """Drop the variables of this name, which nothing uses, and the equations for them alone."""
        dropped = self._eqns(name)
        sources = {v for eqn in dropped for v in _variables(eqn.invars)}
        eqns = [
            eqn
            for eqn in self.jaxpr.eqns
            if eqn not in dropped and not sources.intersection(eqn.outvars)
        ]
        return self._with(eqns=eqns)

    def replacing(self, name: str, variables: Sequence[Var]) -> "Program":
        """Replace the variables of this name by others, which must be computed before them."""
        new = iter(variables)
        eqns = [
            eqn.replace(invars=[next(new)]) if eqn.params.get("name") == name else eqn
            for eqn in self.jaxpr.eqns
        ]
        return self._with(eqns=eqns)

    def cut(self, variables: Sequence[Var]) -> "Program":
        """Make variables inside of the function its last inputs."""
        known = set(variables)
        eqns = [eqn for eqn in self.jaxpr.eqns if not known.intersection(eqn.outvars)]
        return self._with(eqns=eqns, invars=[*self.jaxpr.invars, *variables])

    def also_returning(self, variables: Sequence[Var]) -> "Program":
        """Make variables inside of the function its last outputs."""
        return self._with(outvars=[*self.jaxpr.outvars, *variables])

    def returning(self, outputs: Iterable[int]) -> "Program":
        """Keep some of the outputs, and the equations that they need. All inputs remain.

        Effects that no output depends on, such as those of a progress meter, are dropped.
        """
        outvars = [self.jaxpr.outvars[i] for i in outputs]
        needed = set(_variables(outvars))
        eqns = []
        for eqn in reversed(self.jaxpr.eqns):
            if needed.intersection(eqn.outvars):
                eqns.append(eqn)
                needed.update(_variables(eqn.invars))
        return self._with(eqns=eqns[::-1], outvars=outvars)

    def uses(self) -> list[bool]:
        """Whether each input is used."""
        used = set(_variables(self.jaxpr.outvars))
        for eqn in self.jaxpr.eqns:
            used.update(_variables(eqn.invars))
        return [v in used for v in self.jaxpr.invars]

    def uses_in_derivative(self) -> list[bool]:
        """Whether derivatives depend on the value of each input.

        The former state of a sample that makes no step and the former contents of a buffer do not
        count.
        """
        return _uses_in_derivative(self.jaxpr, [False] * len(self.jaxpr.outvars))

    def without_equinox(self, *values: Any) -> list[jax.Array]:
        """Evaluate the function without equinox's primitives for batches and buffers.

        Their reverse mode does not know of manual axes, see `manual_axes`.
        """
        known = dict(zip(self.jaxpr.constvars, self.constants, strict=True))
        known.update(zip(self.jaxpr.invars, values, strict=True))
        read = lambda x: x.val if isinstance(x, Literal) else known[x]
        for eqn in self.jaxpr.eqns:
            inputs = [read(x) for x in eqn.invars]
            if eqn.primitive.name == "select_if_vmap":
                outputs = [lax.select(*inputs)]
            elif eqn.primitive.name == "maybe_set":
                outputs = eqn.primitive.impl(*inputs, **{**eqn.params, "makes_false_steps": True})
            else:
                outputs = bind(eqn, inputs, {})
            known.update(zip(eqn.outvars, outputs, strict=True))
        return [read(x) for x in self.jaxpr.outvars]

    def perturbed(self, inputs: Sequence[bool]) -> list[bool]:
        """Whether each output may have a derivative with respect to the marked inputs."""
        return _perturbed(self.jaxpr, inputs)

    def relevant(self, outputs: Sequence[bool]) -> list[bool]:
        """Whether each input may have a derivative in the marked outputs."""
        return _relevant(self.jaxpr, outputs)

    def _eqns(self, name: str) -> list[JaxprEqn]:
        return [eqn for eqn in self.jaxpr.eqns if eqn.params.get("name") == name]

    def _with(self, **changes: Any) -> "Program":
        jaxpr = self.jaxpr.replace(**changes)
        return Program(jaxpr, self.constants)


def trace(function: Callable[..., Any], *values: Any) -> tuple[Program, list[jax.Array]]:
    """Return a function as a program, and the traced values that it closes over.

    The first inputs of the program are the latter. Then come those of the function.
    """
    closed = jax.make_jaxpr(function)(*values)
    is_traced = [isinstance(c, jax.core.Tracer) for c in closed.consts]
    split = lambda xs, keep: [x for x, t in zip(xs, is_traced, strict=True) if t is keep]
    constants = split(closed.consts, False)
    # From jax 0.12 on, a jaxpr holds its constants; one without a value would be an input.
    held = {"consts": constants} if hasattr(closed.jaxpr, "consts") else {}
    jaxpr = closed.jaxpr.replace(
        constvars=split(closed.jaxpr.constvars, False),
        invars=[*split(closed.jaxpr.constvars, True), *closed.jaxpr.invars],
        **held,
    )
    return Program(jaxpr, constants), split(closed.consts, True)


def _variables(atoms: Iterable[Any]) -> list[Var]:
    return [x for x in atoms if not isinstance(x, Literal)]


def _is_differentiable(variable: Any) -> bool:
    return jnp.issubdtype(variable.aval.dtype, jnp.inexact)


def _inner(eqn: JaxprEqn) -> Jaxpr | None:
    """The jaxpr of a call."""
    return eqn.params["jaxpr"].jaxpr if eqn.primitive.name in ("jit", "pjit") else None


def _perturbed(jaxpr: Jaxpr, inputs: Sequence[bool]) -> list[bool]:
    known = {v for v, p in zip(jaxpr.invars, inputs, strict=True) if p and _is_differentiable(v)}
    marks = lambda atoms: [not isinstance(x, Literal) and x in known for x in atoms]
    for eqn in jaxpr.eqns:
        ins = marks(eqn.invars)
        if not any(ins) or eqn.primitive.name == "stop_gradient":
            continue
        inner = _inner(eqn)
        outs = [True] * len(eqn.outvars) if inner is None else _perturbed(inner, ins)
        known.update(
            v for v, p in zip(eqn.outvars, outs, strict=True) if p and _is_differentiable(v)
        )
    return marks(jaxpr.outvars)


def _relevant(jaxpr: Jaxpr, outputs: Sequence[bool]) -> list[bool]:
    known = {
        v
        for v, r in zip(jaxpr.outvars, outputs, strict=True)
        if r and not isinstance(v, Literal) and _is_differentiable(v)
    }
    for eqn in reversed(jaxpr.eqns):
        outs = [v in known for v in eqn.outvars]
        if not any(outs) or eqn.primitive.name == "stop_gradient":
            continue
        inner = _inner(eqn)
        ins = [True] * len(eqn.invars) if inner is None else _relevant(inner, outs)
        known.update(
            v
            for v, r in zip(eqn.invars, ins, strict=True)
            if r and not isinstance(v, Literal) and _is_differentiable(v)
        )
    return [v in known for v in jaxpr.invars]


def _uses_in_derivative(jaxpr: Jaxpr, outputs: Sequence[bool]) -> list[bool]:
    """`outputs` tells the outputs on whose values later derivatives depend."""
    known = set(_variables(v for v, used in zip(jaxpr.outvars, outputs, strict=True) if used))
    for eqn in reversed(jaxpr.eqns):
        outs = [v in known for v in eqn.outvars]
        name, inner = eqn.primitive.name, _inner(eqn)
        if inner is not None:
            ins = _uses_in_derivative(inner, outs)
        else:
            linear_from = LINEAR_FROM.get(name, len(eqn.invars))
            ins = [i < linear_from or any(outs) for i in range(len(eqn.invars))]
        unread = UNREAD_OPERAND.get(name)
        pairs = zip(eqn.invars, ins, strict=True)
        known.update(_variables(x for i, (x, used) in enumerate(pairs) if used and i != unread))
    return [v in known for v in jaxpr.invars]
