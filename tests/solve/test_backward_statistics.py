"""Counts of the backward solve against a counter in the vector field."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import pytest

import taynode as tn


CONTROLLER = dfx.PIDController(rtol=1e-7, atol=1e-7)
Y0 = jnp.array([1.0, -0.5])
RATE = jnp.array(1.3)


def field(t, y, args):
    return jnp.sin(args * t) * jnp.stack([y[1], -jnp.sin(y[0])])


def counted(function):
    """The same function, and how many times it was evaluated."""
    count = [0]

    def tick():
        count[0] += 1

    def wrapped(t, y, args):
        jax.debug.callback(tick)
        return function(t, y, args)

    return wrapped, count


SETTINGS = {
    "FSAL": (dfx.Dopri5(), 0.1, {"stepsize_controller": CONTROLLER}),
    "rejected at first": (dfx.Dopri5(), 1.9, {"stepsize_controller": CONTROLLER}),
    "not FSAL": (
        tn.solvers.Fehlberg12(),
        0.01,
        {"stepsize_controller": dfx.PIDController(1e-3, 1e-3)},
    ),
    "segments": (
        dfx.Tsit5(),
        0.1,
        {"stepsize_controller": CONTROLLER, "saveat": dfx.SaveAt(t0=True, ts=[0.5, 0.7, 2.0])},
    ),
    "fixed": (dfx.Dopri5(), 0.1, {}),
    "Adams": (tn.solvers.Adams(), 0.01, {"stepsize_controller": CONTROLLER}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_counts_are_those_of_the_gradient(name):
    solver, dt0, options = SETTINGS[name]
    stats = tn.backward_statistics(dfx.ODETerm(field), solver, 0.0, 2.0, dt0, Y0, RATE, **options)
    counting, count = counted(field)

    def solve(rate):
        return tn.diffeqsolve(
            dfx.ODETerm(counting),
            solver,
            0.0,
            2.0,
            dt0,
            Y0,
            rate,
            adjoint=dfx.BacksolveAdjoint(),
            **options,
        )

    forward = int(solve(RATE).stats["nfe"])
    jax.effects_barrier()
    count[0] = 0
    jax.block_until_ready(jax.grad(lambda rate: jnp.sum(solve(rate).ys[:]))(RATE))
    jax.effects_barrier()
    assert int(stats["nfe"]) == count[0] - forward
    assert stats["num_steps"] == stats["num_accepted_steps"] + stats["num_rejected_steps"]


# `test_same_as_diffrax.py` has the gradients of such solves, which are those of the same steps.
@pytest.mark.slow
@pytest.mark.parametrize("quadrature", [tn.Augmented(), tn.Backward()])
def test_a_penalty_without_weight_changes_nothing(quadrature):
    """Control of the backward solve sees what the plain adjoint sees, whatever the quadrature."""
    arguments = dfx.ODETerm(field), dfx.Dopri5(), 0.0, 2.0, 0.1, Y0, RATE
    plain = tn.backward_statistics(*arguments, stepsize_controller=CONTROLLER)
    larger = tn.backward_statistics(
        *arguments,
        stepsize_controller=CONTROLLER,
        regularizer=tn.TotalDerivative(order=2),
        quadrature=quadrature,
        penalty_cotangent=jnp.zeros(()),
    )
    assert {k: int(v) for k, v in larger.items()} == {k: int(v) for k, v in plain.items()}


def test_other_adjoints_have_no_backward_solve():
    with pytest.raises(ValueError, match="`adjoint` must be a `BacksolveAdjoint`"):
        tn.backward_statistics(
            dfx.ODETerm(field), dfx.Dopri5(), 0.0, 1.0, 0.1, Y0, adjoint=dfx.DirectAdjoint()
        )


def test_terms_must_be_an_ode():
    with pytest.raises(TypeError, match="`terms` must be an `ODETerm`"):
        tn.backward_statistics(field, dfx.Dopri5(), 0.0, 1.0, 0.1, Y0)
