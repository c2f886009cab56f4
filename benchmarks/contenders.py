"""Three ways to the derivatives of an ODE's solution, behind one signature.

Each takes `(field, t, y, args, order)` and returns d^order y/dt^order.
"""

import jax
import jax.numpy as jnp
from jax.experimental.jet import jet

import taynode as tn


def by_sweeps(field, t, y, args, order):
    """taynode: one sweep of the field per order."""
    return tn.solution_derivatives(field, t, y, args, order=order)[-1]


def by_repeated_jet(field, t, y, args, order):
    """The paper's Algorithm 1 on `jax.experimental.jet`: a call of each order below the last."""
    derivatives = [field(t, y, args)]
    for k in range(1, order):
        time = [jnp.ones_like(t)] + [jnp.zeros_like(t)] * (k - 1)
        _, series = jet(lambda t, y: field(t, y, args), (t, y), (time, derivatives))
        derivatives = [derivatives[0], *series]
    return derivatives[-1]


def by_nested_jvp(field, t, y, args, order):
    """The total derivative d/dt = (d/dt + f d/dy), nested."""

    def rate(t, y):
        return field(t, y, args)

    def total_derivative(fun):
        return lambda t, y: jax.jvp(fun, (t, y), (jnp.ones_like(t), rate(t, y)))[1]

    fun = rate
    for _ in range(order - 1):
        fun = total_derivative(fun)
    return fun(t, y)


CONTENDERS = {
    "taynode": by_sweeps,
    "jet": by_repeated_jet,
    "nested jvp": by_nested_jvp,
}
