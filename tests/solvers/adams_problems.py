"""Problems for Adams' method, and how they are solved."""

from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate

from taynode.solvers import Adams, AdamsController


# A system, its start and its end.
PROBLEMS = {
    "exponential": (lambda t, y, args: y, [1.0], 1.0),
    "rotation": (lambda t, y, args: 2 * np.pi * jnp.stack([-y[1], y[0]]), [1.0, 0.0], 1.0),
    "pendulum": (
        lambda t, y, args: jnp.stack([y[1], -0.25 * y[1] - 9.8 * jnp.sin(y[0])]),
        [np.pi - 0.1, 0.0],
        10.0,
    ),
}


def solve(field, t0, t1, dt0, y0, args=None, *, tolerance: Any = 1e-8, jump_ts=None, **options):
    controller = AdamsController(dfx.PIDController(rtol=tolerance, atol=tolerance))
    if jump_ts is not None:
        controller = dfx.ClipStepSizeController(controller, jump_ts=jump_ts)
    solver = Adams().with_tolerances(tolerance, tolerance)
    return dfx.diffeqsolve(
        dfx.ODETerm(field), solver, t0, t1, dt0, y0, args, stepsize_controller=controller, **options
    )


def end(solution: dfx.Solution) -> Any:
    return jax.tree.map(lambda y: y[-1], solution.ys)


def num_steps(solution: dfx.Solution) -> int:
    return int(solution.stats["num_steps"])


def exact(field, y0, t1):
    rate = jax.jit(lambda t, y: field(t, y, None))
    return scipy.integrate.solve_ivp(rate, (0.0, t1), y0, "DOP853", rtol=3e-14, atol=1e-15).y[:, -1]


class Counter:
    """A vector field that counts its evaluations, compiled or not."""

    def __init__(self, field):
        self.field, self.count = field, 0

    def __call__(self, t, y, args):
        jax.debug.callback(self.increment, jnp.sum(jax.tree.leaves(y)[0]))
        return self.field(t, y, args)

    def increment(self, _):
        self.count += 1

    def total(self):
        jax.effects_barrier()
        return self.count


def first_step(field, y0, tolerance):
    """The initial step of the paper's released code; two evaluations, one at the start."""
    y0 = jnp.asarray(y0)
    size = lambda x: jnp.linalg.norm(x / (tolerance + tolerance * jnp.abs(y0)))
    slope = field(0.0, y0, None)
    probe = 0.01 * size(y0) / size(slope)
    change = size(field(probe, y0 + probe * slope, None) - slope) / probe
    return jnp.minimum(100 * probe, (0.01 / (size(slope) + change)) ** (1 / 5)), slope
