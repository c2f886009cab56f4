"""Penalties at points that are known without a solve."""

import functools

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import taynode as tn
from taynode.taylor.solution import check_vector_field
from tests.quadrature.reference import close


REGULARIZERS = {"r2": tn.TotalDerivative(2), "jacobian": tn.JacobianFrobenius()}


def field(t, y, a):
    return jnp.sin(a * y) + t * y[::-1]


def test_it_is_the_rate_inside_of_a_solve():
    """A solve that is a point long."""
    y, length, key = jnp.array([1.0, -0.5, 2.0]), 1e-6, jr.key(0)
    solution = tn.diffeqsolve(
        dfx.ODETerm(field), dfx.Euler(), 0.7, 0.7 + length, length, y, 1.3,
        regularizer=REGULARIZERS["r2"], key=key,
    )  # fmt: skip
    velocity, rate = tn.penalty_at(REGULARIZERS, field, 0.7, y, 1.3, key=key)
    close(rate["r2"], solution.stats["penalty"] / length, 1e-5)
    close(velocity, field(0.7, y, 1.3), 1e-12)


def test_batches_and_gradients_of_flow_matching():
    times, states = jnp.linspace(0, 1, 4), jr.normal(jr.key(1), (4, 3))

    @jax.jit
    def loss(a):
        at = functools.partial(tn.penalty_at, tn.TotalDerivative(2), field)
        velocities, rates = jax.vmap(at, in_axes=(0, 0, None))(times, states, a)
        return jnp.mean(velocities**2) + 0.1 * jnp.mean(rates)

    def by_hand(a):
        def one(t, y):
            v, dv = jax.jvp(lambda t, y: field(t, y, a), (t, y), (1.0, field(t, y, a)))
            return jnp.mean(v**2) + 0.1 * jnp.mean(dv**2)

        return np.mean([one(t, y) for t, y in zip(times, states, strict=True)])

    close(loss(1.3), by_hand(1.3), 1e-12)
    h = 1e-5
    close(jax.grad(loss)(1.3), (by_hand(1.3 + h) - by_hand(1.3 - h)) / (2 * h), 1e-7)


def test_penalties_on_steps_need_a_solve():
    with pytest.raises(ValueError, match="needs a solve"):
        tn.penalty_at(tn.ErrorEstimate(), field, 0.0, jnp.ones(3), 1.3)


def test_a_term_in_place_of_a_vector_field_is_refused():
    with pytest.raises(TypeError, match=r"`vector_field` must be a function .* `term.vf`"):
        check_vector_field(dfx.ODETerm(lambda t, y, args: -y))
