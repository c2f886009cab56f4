"""Solves and their gradients lower for accelerators, which `jax.export` can do on any machine.

A compiled program raises an error by a callback into Python, and a callback cannot be exported for
several platforms. With `throw=False` a solve reports failure in `solution.result` instead. diffrax
also checks the sign of `dt0` and the order of `ts`: with the environment variable
`EQX_ON_ERROR=nan`, which equinox reads when it is imported, these checks turn results into NaN.
"""

import os
import subprocess
import sys

import diffrax as dfx
import jax
import jax.export
import jax.numpy as jnp
import jax.random as jr

import taynode as tn
from taynode.models import convolve


PLATFORMS = ("cpu", "cuda", "tpu")
KEYS = jr.split(jr.key(0), 4)
WEIGHTS = [jr.normal(KEYS[0], (2, 4)), jr.normal(KEYS[1], (4, 2))]
Y0 = jr.normal(KEYS[2], (3, 2))


def field(t, y, weights):
    first, second = weights
    return jnp.tanh(y @ first + t) @ second


def loss(weights, y0, key):
    solution = tn.diffeqsolve(
        dfx.ODETerm(field),
        dfx.Dopri5(),
        t0=0.0,
        t1=1.0,
        dt0=None,
        y0=y0,
        args=weights,
        stepsize_controller=dfx.PIDController(rtol=1e-3, atol=1e-3),
        regularizer=tn.TotalDerivative(order=3),
        quadrature=tn.Sampled(batch_axis=0),
        key=key,
        throw=False,
    )
    return jnp.sum(solution.ys[-1] ** 2) + solution.stats["penalty"]


def convolution_loss(images, kernel):
    return jnp.sum(jnp.tanh(convolve(images, kernel, (1, 1))))


IMAGES, KERNEL = jr.normal(KEYS[3], (1, 4, 4, 2)), jr.normal(KEYS[3], (3, 3, 2, 2))


FUNCTIONS = {
    "solve": (loss, (WEIGHTS, Y0, KEYS[3])),
    "gradient": (jax.grad(loss), (WEIGHTS, Y0, KEYS[3])),
    "convolution": (jax.grad(convolution_loss, argnums=(0, 1)), (IMAGES, KERNEL)),
}


def export_all():
    for name, (fun, arguments) in FUNCTIONS.items():
        exported = jax.export.export(jax.jit(fun), platforms=PLATFORMS)(*arguments)
        sys.stdout.write(f"{name} {' '.join(exported.platforms)}\n")


# In a process of its own, since what is traced with callbacks elsewhere stays in JAX's caches.
def test_everything_lowers_for_every_platform():
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "EQX_ON_ERROR": "nan"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{name} {' '.join(PLATFORMS)}" for name in FUNCTIONS]


if __name__ == "__main__":
    export_all()
