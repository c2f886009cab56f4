"""Calls that only wrap a function: their body is swept in place of the call.

- `checkpoint` is inlined. Its rematerialization does not carry over to the sweep, whose orders
  share their intermediate values.
- `custom_vjp` functions keep their reverse rule for the value. Above order 0 their body is swept,
  since a reverse rule says nothing about higher forward derivatives; that evaluates the body once
  more at order 0.
- `custom_jvp` functions are not here: their rule is honored at every order, see `derived`.
"""

from jax.extend.core import primitives as p

from ..advance import Sweep
from ..program import Program
from ..registry import INLINED, rule_for


INLINED.update(
    {
        p.jit_p: "jaxpr",
        p.closed_call_p: "call_jaxpr",
        p.call_p: "call_jaxpr",
        p.remat_p: "jaxpr",
    }
)


@rule_for(p.custom_vjp_call_p)
def _custom_vjp(equation, k, inputs, outputs, memory):
    body = equation.derive(
        "body", lambda: Program(equation.params["call_jaxpr"], equation.active, effects=False)
    )
    sweep = Sweep.restore(
        body, [memory[j] for j in sorted(memory)], dict(zip(body.inputs, inputs, strict=True))
    )
    nothing = [None] * len(inputs)
    if k == 1:
        sweep.advance(nothing)
        memory[0] = sweep.record()
    values = sweep.advance(nothing)
    memory[k] = sweep.record()
    return values
