"""What every penalty is by definition, computed without the library and without diffrax.

Derivatives are nested `jax.jvp`, paths are many small Runge-Kutta steps, and integrals are Gauss
quadrature. The state is a batch of rows `(x, y, number of the row)`; the number does not move, so
that a charge can tell which row it belongs to.
"""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

import taynode as tn


NUM_ROWS = 3
T0, T1 = 0.2, 1.1
LENGTH = T1 - T0
KEY = jr.key(11)


class Field(eqx.Module):
    """A small network that depends on time, with parameters of its own and others in `args`."""

    weight: Any

    def __call__(self, t, y, args):
        moving = jnp.tanh(y @ self.weight + args["drive"] * jnp.cos(2 * t)) - 0.3 * y
        return moving * jnp.array([1.0, 1.0, 0.0], y.dtype)


FIELD = Field(jnp.array([[0.5, -0.9, 0.3], [0.8, 0.4, 0.2], [0.1, 0.2, 0.1]]))
ARGS = {"drive": jnp.array([0.4, -0.6, 0.2])}
Y0 = jnp.array([[1.0, -0.5, 0.0], [0.3, 0.9, 1.0], [-0.8, 0.2, 2.0]])


# --- rates


def derivative(field, order):
    """The total derivative of this order of solutions of `field`, as a function of the point."""
    if order == 1:
        return field
    lower = derivative(field, order - 1)

    def higher(t, y, args):
        along = (jnp.ones_like(t), field(t, y, args))
        return jax.jvp(lambda t, y: lower(t, y, args), (t, y), along)[1]

    return higher


def jacobian(field, t, y, args):
    """The matrix df/dy."""
    flat = lambda x: field(t, x.reshape(y.shape), args).reshape(-1)
    return jax.jacfwd(flat)(y.reshape(-1))


def mean_square(x):
    return jnp.sum(x**2) / x.size


def kinetic(field, t, y, args, noise):
    return mean_square(field(t, y, args))


def frobenius(field, t, y, args, noise):
    return mean_square(noise.reshape(-1) @ jacobian(field, t, y, args))


def frobenius_forward(field, t, y, args, noise):
    return mean_square(jacobian(field, t, y, args) @ noise.reshape(-1))


REGULARIZERS = {
    "r2": tn.TotalDerivative(order=2),
    "r3": tn.TotalDerivative(order=3),
    "kinetic": tn.KineticEnergy(),
    "jacobian": tn.JacobianFrobenius(),
    "rnode": tn.RNODE(kinetic=0.3, jacobian=0.7, noise="gaussian", form="jvp"),
    "directional": tn.DirectionalDerivative(),
}

RATES = {
    "r2": lambda f, t, y, args, noise: mean_square(derivative(f, 2)(t, y, args)),
    "r3": lambda f, t, y, args, noise: mean_square(derivative(f, 3)(t, y, args)),
    "kinetic": kinetic,
    "jacobian": frobenius,
    "rnode": lambda *where: 0.3 * kinetic(*where) + 0.7 * frobenius_forward(*where),
    "directional": lambda f, t, y, args, noise: mean_square(
        jacobian(f, t, y, args) @ f(t, y, args).reshape(-1)
    ),
}


# --- paths and integrals


def state_at(field, args, y0, t0, t, num_steps=256):
    """The solution at time `t`, by the classical method of order four."""
    h = (t - t0) / num_steps

    def step(y, i):
        s = t0 + i * h
        k1 = field(s, y, args)
        k2 = field(s + h / 2, y + h / 2 * k1, args)
        k3 = field(s + h / 2, y + h / 2 * k2, args)
        k4 = field(s + h, y + h * k3, args)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lax.scan(step, y0, jnp.arange(num_steps, dtype=y0.dtype))[0]


_nodes, _weights = np.polynomial.legendre.leggauss(14)
GAUSS = jnp.broadcast_to(jnp.asarray((_nodes + 1) / 2)[:, None], (14, NUM_ROWS))
GAUSS_WEIGHTS = jnp.asarray(_weights / 2)


def penalty(rate, field, args, y0, t0, t1, noise=None, fractions=GAUSS, weights=GAUSS_WEIGHTS):
    """The integral of a rate over the rows' paths, the mean over the rows.

    `fractions` of the interval, for each point and row, say where the rate is evaluated.
    """
    noise = jnp.zeros_like(y0) if noise is None else noise

    def charge(fraction, row, noise):
        t = t0 + (t1 - t0) * fraction
        y = state_at(field, args, row[None], t0, t)
        return rate(field, t, y, args, noise[None])

    charges = jax.vmap(jax.vmap(charge), in_axes=(0, None, None))(fractions, y0, noise)
    return jnp.abs(t1 - t0) * jnp.mean(weights @ charges)


def estimate(rate, field, args, y0, t0, t1, fractions, noise=None):
    """What sampling at these times must give."""
    weights = jnp.full(len(fractions), 1 / len(fractions))
    return penalty(rate, field, args, y0, t0, t1, noise, fractions, weights)


# --- witnesses


class Witness(tn.AbstractRegularizer):
    """The charge of another regularizer, with the times and the noise it was penalized at.

    Integrals are means over times and rows, so times and noise are put into places of their own.
    """

    inner: tn.AbstractRegularizer
    points: int = eqx.field(static=True, default=1)

    def init(self, y0, args, *, key=None):
        return self.inner.init(y0, args, key=key)

    def rate(self, vector_field, t, y, args, state):
        slope, charge = self.inner.rate(vector_field, t, y, args, state)
        rows = jax.nn.one_hot(jnp.round(y[:, 2]).astype(int), NUM_ROWS, dtype=y.dtype)
        fraction = ((t - T0) / LENGTH).astype(y.dtype)
        stratum = jnp.clip(jnp.floor(fraction * self.points), 0, self.points - 1).astype(int)
        place = jax.nn.one_hot(stratum, self.points, dtype=y.dtype)
        seen = {"charge": charge, "fractions": jnp.outer(place, jnp.mean(rows, 0)) * fraction}
        if state is not None:
            seen["noise"] = rows.T @ state / len(y)
        return slope, seen


def seen_fractions(seen, num_rows, points):
    """The fractions of the interval at which each row was penalized, (points, rows)."""
    return seen["fractions"] * (points * num_rows / LENGTH)


def seen_noise(seen, num_rows):
    """The noise of each row."""
    return seen["noise"] * (num_rows / LENGTH)


# --- solves


QUADRATURES = {
    "augmented": tn.Augmented(),
    "sampled": tn.Sampled(points=4),
    "rows": tn.Sampled(points=2, batch_axis=0),
    "backward": tn.Backward(),
}


def adjoints(tol):
    """All adjoints; the last but one is controlled by a seminorm."""
    seminorm = dfx.PIDController(rtol=tol, atol=tol, norm=dfx.adjoint_rms_seminorm)
    return {
        "recursive": dfx.RecursiveCheckpointAdjoint(),
        "direct": dfx.DirectAdjoint(),
        "backsolve": dfx.BacksolveAdjoint(),
        "seminorm": dfx.BacksolveAdjoint(stepsize_controller=seminorm),
        "forward": dfx.ForwardMode(),
    }


# `Backward` exists in reverse mode alone; `test_gradients.py` has the error that says so.
ALLOWED = [
    (quadrature, adjoint)
    for quadrature in QUADRATURES
    for adjoint in adjoints(1e-10)
    if (quadrature, adjoint) != ("backward", "forward")
]


def solve(
    regularizer,
    quadrature,
    *,
    field=FIELD,
    args=ARGS,
    y0=Y0,
    t0=T0,
    t1=T1,
    dt0=None,
    tol=1e-10,
    key=KEY,
    solver=None,
    **options,
):
    """An adaptive solve of the reference problem, unless told otherwise."""
    return tn.diffeqsolve(
        dfx.ODETerm(field),
        dfx.Tsit5() if solver is None else solver,
        t0,
        t1,
        dt0,
        y0,
        args,
        regularizer=regularizer,
        quadrature=quadrature,
        key=key,
        **{
            "stepsize_controller": dfx.PIDController(rtol=tol, atol=tol),
            "max_steps": 64,
            **options,
        },
    )


def close(actual, expected, rtol, atol=0.0, message=""):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol, err_msg=message)
