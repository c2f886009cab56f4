"""Functions that are piecewise linear.

The piece is chosen at order 0, with JAX's own convention at ties and kinks.
"""

import jax.numpy as jnp
from jax import lax
from jax.extend.core import primitives as p

from ..registry import ANY, rule_for, RULES
from ..series import add, instantiate, multiply


@rule_for(p.abs_p)
def _abs(equation, k, inputs, outputs, memory):
    (u,) = inputs
    if jnp.issubdtype(equation.in_avals[0].dtype, jnp.complexfloating):
        return RULES[ANY].step(equation, k, inputs, outputs, memory)
    if k == 1:
        # As in JAX, the slope at 0 is 1.
        ones = lax.full_like(u[0], 1)
        memory[0] = lax.select(lax.ge(u[0], lax.full_like(u[0], 0)), ones, lax.neg(ones))
    return [multiply(memory[0], u[k])]


@rule_for(p.max_p, p.min_p)
def _extremum(equation, k, inputs, outputs, memory):
    (u, v), (y,) = inputs, outputs
    (aval,) = equation.out_avals
    if k == 1:
        memory[0] = [_share(x[0], y[0], z[0]) for x, z in ((u, v), (v, u))]
    total = add(*(multiply(share, x[k]) for share, x in zip(memory[0], (u, v), strict=True)))
    return [None if total is None else instantiate(total, aval)]


def _share(x, y, other):
    """1 where y is x, 1/2 where it is x and the other too, else 0."""
    x, other = jnp.broadcast_to(x, y.shape), jnp.broadcast_to(other, y.shape)
    tie = lax.select(lax.eq(y, other), lax.full_like(y, 0.5), lax.full_like(y, 1))
    return lax.select(lax.eq(x, y), tie, lax.full_like(y, 0))
