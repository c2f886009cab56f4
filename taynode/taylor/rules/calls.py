"""Calls that only wrap a function: their body is swept in place of the call.

- `checkpoint` is inlined. Its rematerialization does not carry over to the sweep, whose orders
  share their intermediate values.
- `custom_vjp` functions are differentiated through their body, since a rule for reverse mode says
  nothing about higher forward derivatives. Their own rule still holds where they are applied to
  constants.
- `custom_jvp` functions are not here: their rule is honored, see `derived`.
"""

from jax.extend.core import primitives as p

from ..registry import INLINED


INLINED.update(
    {
        p.jit_p: "jaxpr",
        p.closed_call_p: "call_jaxpr",
        p.call_p: "call_jaxpr",
        p.remat_p: "jaxpr",
        p.custom_vjp_call_p: "call_jaxpr",
    }
)
