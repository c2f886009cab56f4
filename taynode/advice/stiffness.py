"""Whether stability rather than accuracy limits the steps of explicit solvers."""

import dataclasses
import math

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._types import Arrays
from ..models import Solve
from .problem import InitialValues


# Steps of Dopri5 and Tsit5 are stable up to about this number over the spectral radius.
STABLE = 3.3
NUM_SAMPLES, NUM_TIMES, NUM_ITERATIONS = 4, 16, 30
# If stability asks for this share of the steps, accuracy does not.
SHARE = 0.5


@dataclasses.dataclass(frozen=True)
class StiffnessCheck:
    """The steps that stability requires, beside those that were taken.

    - `stable_steps`: the integral of the Jacobian's spectral radius over time, divided by the
        extent of the stability region.
    - `steps`: the steps that an explicit solver of order 5 took.
    """

    stable_steps: float
    steps: float

    @property
    def is_stiff(self) -> bool:
        """Whether stability limits the steps."""
        return self.stable_steps > SHARE * self.steps

    def __str__(self) -> str:
        verdict = "limits" if self.is_stiff else "does not limit"
        return (
            f"Stability {verdict} the steps: an explicit solver of order 5 took {self.steps:.3g}, "
            f"and would be stable with {max(1.0, self.stable_steps):.3g}."
        )


def stiffness_of(problem: InitialValues, solve: Solve) -> StiffnessCheck:
    """Measure the spectral radius along the paths of some samples."""
    few = eqx.tree_at(
        lambda p: p.y0s, problem, jtu.tree_map(lambda x: x[:NUM_SAMPLES], problem.y0s)
    )
    radii, steps = _radii(few, solve)
    length = abs(float(problem.t1) - float(problem.t0))
    radius = float(np.nanmean(np.asarray(radii)))
    stable = length * radius / STABLE if math.isfinite(radius) else math.inf
    return StiffnessCheck(stable, float(np.mean(np.asarray(steps, float))))


@eqx.filter_jit
def _radii(
    problem: InitialValues, solve: Solve
) -> tuple[Float[Array, "num times"], Float[Array, "num"]]:
    """The spectral radius at some times of each path, and the steps of each path."""

    def each(y0: Arrays) -> tuple[Array, Array]:
        dtype = jnp.result_type(*jtu.tree_leaves(y0))
        t0, t1 = jnp.asarray(problem.t0, dtype), jnp.asarray(problem.t1, dtype)
        times = jnp.linspace(t0, t1, NUM_TIMES)
        saveat = dfx.SaveAt(ts=times)
        sol = solve(problem.vector_field, y0, problem.args, t0=t0, t1=t1, saveat=saveat)
        radius = lambda t, y: _spectral_radius(problem, t, y)
        steps = sol.stats["num_steps"]
        return jax.vmap(radius)(times, sol.ys), jnp.asarray(steps, dtype)

    return jax.vmap(each)(problem.y0s)


def _spectral_radius(problem: InitialValues, t: Array, y: Arrays) -> Float[Array, ""]:
    """The largest modulus of an eigenvalue of the Jacobian, by power iteration.

    Complex pairs of eigenvalues make the norm of iterates oscillate. The mean growth over the
    second half of the iterations does not.
    """
    flat, unravel = ravel_pytree(y)
    field = lambda z: ravel_pytree(problem.vector_field(t, unravel(z), problem.args))[0]
    start = jr.normal(jr.key(0), flat.shape, flat.dtype)

    def iterate(direction: Array, _: None) -> tuple[Array, Array]:
        product = jax.jvp(field, (flat,), (direction,))[1]
        size = jnp.sqrt(jnp.sum(product**2))
        return product / jnp.where(size > 0, size, 1.0), jnp.log(size)

    start = start / jnp.sqrt(jnp.sum(start**2))
    _, growth = jax.lax.scan(iterate, start, None, length=NUM_ITERATIONS)
    return jnp.exp(jnp.mean(growth[NUM_ITERATIONS // 2 :]))
