"""Calls of a function. The Taylor expansion of the call is that of its body.

- `jit` and other plain calls are inlined.
- `custom_vjp` functions keep their reverse rule for the value. Above order 0 their body is
  expanded, since a reverse rule does not determine higher forward derivatives. This evaluates the
  body a second time at order 0.
- `custom_jvp` functions follow their own rule at every order, see `derived`.
- `checkpoint` is kept, see `checkpoint`.
"""

from jax.extend.core import primitives as p

from ..expansion import Expansion
from ..program import Program
from ..registry import INLINED, rule_for


INLINED.update({p.jit_p: "jaxpr", p.closed_call_p: "call_jaxpr", p.call_p: "call_jaxpr"})


@rule_for(p.custom_vjp_call_p)
def _custom_vjp(equation, k, inputs, outputs, memory):
    body = equation.derive(
        "body", lambda: Program(equation.params["call_jaxpr"], equation.active, effects=False)
    )
    expansion = Expansion.restore(
        body, [memory[j] for j in sorted(memory)], dict(zip(body.inputs, inputs, strict=True))
    )
    if k == 1:
        expansion.advance()
        memory[0] = expansion.record()
    values = expansion.advance()
    memory[k] = expansion.record()
    return values
