"""Gradients of penalties: each adjoint with each quadrature, in both directions of time.

The equation is y' = a y + b, whose path, second derivative and penalty have closed forms, and so
have those of Euler's method.
"""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn


class Affine(eqx.Module):
    """A parameter inside of the vector field, and one in the arguments."""

    a: jax.Array

    def __call__(self, t, y, b):
        return self.a * y + b


class Timed(tn.TotalDerivative):
    """Another integral tells at which time `Sampled` has evaluated the rate."""

    def rate(self, vector_field, t, y, args, state):
        slope, charge = super().rate(vector_field, t, y, args, state)
        return slope, {"r2": charge, "t": t}


# a, b, y0, t0, t1
POINTS = {
    "forward in time": jnp.array([0.7, -0.4, 1.5, 0.2, 1.1]),
    "backward in time": jnp.array([0.7, -0.4, 1.5, 1.1, 0.2]),
}
QUADRATURES = {
    "augmented": tn.Augmented(),
    "sampled": tn.Sampled(),
    "rows": tn.Sampled(batch_axis=0),
    "backward": tn.Backward(),
}
ADJOINTS = {
    "accepted steps": tn.AcceptedStepAdjoint(),
    "checkpoint": dfx.RecursiveCheckpointAdjoint(),
    "direct": dfx.DirectAdjoint(),
    "backsolve": dfx.BacksolveAdjoint(),
    "forward": dfx.ForwardMode(),
}
# `Backward` exists in reverse mode alone. With a time for each row, which differs from `Sampled` in
# how states are read, the other adjoints are in `test_penalties.py`.
PRODUCT = [(q, a) for q in ("augmented", "sampled", "backward") for a in ADJOINTS]
PRODUCT = [pair for pair in PRODUCT if pair != ("backward", "forward")]
PRODUCT.append(("rows", "accepted steps"))


def exact(x, fraction):
    """The loss, and its penalty: the integral, or an estimate from a fraction of the interval."""
    a, b, y0, t0, t1 = x
    slope = a * y0 + b
    grown = lambda t: jnp.exp(a * (t - t0))
    end = slope / a * (grown(t1) - 1) + y0
    if fraction is None:
        penalty = a**2 * slope**2 * jnp.abs(grown(t1) ** 2 - 1) / (2 * a)
    else:
        t = t0 + (t1 - t0) * fraction
        penalty = jnp.abs(t1 - t0) * (a * slope * grown(t)) ** 2
    return end + 0.3 * penalty, penalty


NUM_STEPS = 4


def grid(t0, t1):
    inner = (t0 + (t1 - t0) * i / NUM_STEPS for i in range(1, NUM_STEPS))
    return jnp.stack([t0, *inner, t1])


def by_euler(x, fraction):
    """The same of Euler's method, whose states are joined by straight lines."""
    a, b, y0, t0, t1 = x
    rate = lambda y: (a * (a * y + b)) ** 2
    states = [y0]
    for step in jnp.diff(grid(t0, t1)):
        states.append(states[-1] + step * (a * states[-1] + b))
    states = jnp.stack(states)
    if fraction is None:
        mean = jnp.mean(rate(states[:-1]))
    else:
        mean = rate(jnp.interp(fraction * NUM_STEPS, jnp.arange(NUM_STEPS + 1.0), states))
    penalty = jnp.abs(t1 - t0) * mean
    return states[-1] + 0.3 * penalty, penalty


@pytest.mark.parametrize(("quadrature", "adjoint"), PRODUCT)
def test_gradient_with_each_quadrature_and_adjoint_is_that_of_the_closed_form(quadrature, adjoint):
    # These two have no gradients for times, and refuse them.
    fixed_times = adjoint == "backsolve" or quadrature == "backward"
    # The others differentiate the steps that were made. Euler's are compiled twice as fast.
    exactly = adjoint == "backsolve"
    tolerance = 1e-6 if exactly else 1e-11

    def loss(x, span):
        a, b, y0 = x[:3]
        t0, t1 = span if fixed_times else x[3:]
        tight = dfx.PIDController(rtol=1e-9, atol=1e-9)
        sol = tn.diffeqsolve(
            dfx.ODETerm(Affine(a)),
            dfx.Tsit5() if exactly else dfx.Euler(),
            t0,
            t1,
            (span[1] - span[0]) / 10 if exactly else None,
            y0[None],
            b,
            regularizer=Timed(order=2),
            quadrature=QUADRATURES[quadrature],
            key=jax.random.key(3),
            stepsize_controller=tight if exactly else dfx.StepTo(grid(t0, t1)),
            adjoint=ADJOINTS[adjoint],
            max_steps=64,
        )
        penalty = sol.stats["penalty"]
        return sol.ys[0, 0] + 0.3 * penalty["r2"], jax.lax.stop_gradient(penalty)

    differentiate = jax.jacfwd if adjoint == "forward" else jax.grad
    gradient = jax.jit(differentiate(loss, has_aux=True))
    reference = jax.value_and_grad(exact if exactly else by_euler, has_aux=True)
    for x in POINTS.values():
        span = x[3:]
        found, seen = gradient(x, span)
        length = jnp.abs(span[1] - span[0])
        sampled = quadrature in ("sampled", "rows")
        fraction = (seen["t"] / length - span[0]) / (span[1] - span[0]) if sampled else None
        (_, penalty), expected = reference(x, fraction)
        if quadrature == "backward":
            assert np.isnan(seen["r2"])
        else:
            np.testing.assert_allclose(seen["r2"], penalty, rtol=tolerance)
        count = 3 if fixed_times else 5
        allowed = {"rtol": 10 * tolerance, "atol": tolerance}
        np.testing.assert_allclose(found[:count], expected[:count], **allowed)
