"""What is stored of each step."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn
from taynode.adjoint.program import trace


CHECKPOINTS = 10
ROWS = jnp.linspace(-1.0, 1.0, 15).reshape(5, 3)


def penalty(adjoint, scale, y0=ROWS):
    solution = tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, scale: scale * jnp.tanh(y * (1 + t))),
        dfx.Dopri5(),
        0.0,
        1.0,
        0.1,
        y0,
        scale,
        stepsize_controller=dfx.PIDController(rtol=1e-6, atol=1e-6),
        regularizer=tn.TotalDerivative(order=2),
        quadrature=tn.Sampled(batch_axis=0),
        key=jax.random.key(0),
        adjoint=adjoint,
    )
    return solution.stats["penalty"]


def test_readings_are_not_stored_with_each_step():
    gradient = jax.make_jaxpr(jax.grad(lambda s: penalty(tn.AcceptedStepAdjoint(CHECKPOINTS), s)))
    # One slot is for entries that are not kept.
    shapes = list(filled(gradient(2.0).jaxpr))
    assert shapes.count((CHECKPOINTS + 1, *ROWS.shape)) == 2  # state and slope
    assert shapes.count((CHECKPOINTS + 1, 1, *ROWS.shape)) == 0


def test_the_gradient_with_readings_is_that_of_diffrax():
    found, expected = (
        jax.grad(lambda s, a=adjoint: penalty(a, s))(2.0)
        for adjoint in (tn.AcceptedStepAdjoint(4), dfx.RecursiveCheckpointAdjoint())
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: x + y, [False, False]),
        (lambda x, y: x * y, [True, True]),
        (lambda x, y: jnp.sin(x - y), [True, True]),
        (lambda x, y: jnp.where(x > 0, jnp.sin(x), y), [True, False]),
        (lambda x, y: jnp.exp(jnp.where(x > 0, 1.0, y)), [True, True]),
        (lambda x, y: (x, -y + jnp.cos(x)), [True, False]),
    ],
)
def test_derivatives_depend_on_values_that_enter_a_nonlinear_function(function, expected):
    program, _ = trace(function, 1.0, 2.0)
    assert program.uses_in_derivative() == expected


def filled(jaxpr):
    """The shapes of arrays that a program fills with one number, also in its inner programs."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "broadcast_in_dim" and not eqn.invars[0].aval.shape:
            yield eqn.params["shape"]
        for value in jax.tree.leaves(eqn.params, is_leaf=lambda x: hasattr(x, "eqns")):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from filled(inner)
