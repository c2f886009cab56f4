"""A vector field with several initial states, and its exact solutions."""

from typing import NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from .._types import Args, Arrays, RealScalarLike, VectorField
from ..models import Solve


# The exact solution is that of a solver with this share of the tolerance, in float64.
REFERENCE = 1e-3
LEAST_TOLERANCE = 1e-13
REFERENCE_STEPS = 2**17


class InitialValues(eqx.Module):
    """A vector field on an interval of time, with initial states along the first axis."""

    vector_field: VectorField
    y0s: Arrays
    t0: RealScalarLike
    t1: RealScalarLike
    args: Args

    @property
    def num_samples(self) -> int:
        """The number of initial states."""
        return jtu.tree_leaves(self.y0s)[0].shape[0]

    def solve(self, solve: Solve) -> "Solved":
        """Solve from each initial state alone."""
        return _solve_each(self, solve)


class Solved(NamedTuple):
    """The final states of all samples, what they cost, and whether each solve succeeded."""

    y1s: Arrays
    nfe: Int[Array, "*num"]
    num_steps: Int[Array, "*num"]
    num_rejected: Int[Array, "*num"]
    okay: Bool[Array, "*num"]


@eqx.filter_jit
def _solve_each(problem: InitialValues, solve: Solve) -> Solved:
    def each(y0: Arrays) -> Solved:
        sol = solve(problem.vector_field, y0, problem.args, t0=problem.t0, t1=problem.t1)
        final = jtu.tree_map(lambda y: y[-1], sol.ys)
        finite = jnp.stack([jnp.all(jnp.isfinite(y)) for y in jtu.tree_leaves(final)])
        okay = (sol.result == dfx.RESULTS.successful) & jnp.all(finite)
        stats = sol.stats
        counts = stats["num_steps"], stats["num_rejected_steps"]
        return Solved(final, stats["nfe"], *counts, okay)

    return jax.vmap(each)(problem.y0s)


def adaptive(
    solver: dfx.AbstractSolver, rtol: ArrayLike, atol: ArrayLike, *, max_steps: int
) -> Solve:
    """Adaptive steps that raise no error. Tolerances are arrays, so a solver is compiled once."""
    controller = dfx.PIDController(rtol=jnp.asarray(rtol), atol=jnp.asarray(atol))
    # No gradient is needed.
    return Solve(solver, controller, adjoint=dfx.ForwardMode(), max_steps=max_steps, throw=False)


class Exact(eqx.Module):
    """Final states that are as good as exact, as flat arrays, and the accuracy that is asked for.

    - `solver`: the name of the solver that found them.
    """

    y1s: Float[np.ndarray, "num size"]
    rtol: float
    atol: float
    solver: str

    def error(self, y1s: Arrays) -> Float[np.ndarray, "num"]:
        """The error of each sample, in units of the accuracy that is asked for."""
        scale = self.atol + self.rtol * np.abs(self.y1s)
        return np.sqrt(np.mean(((_flat(y1s) - self.y1s) / scale) ** 2, axis=1))


def solve_exactly(problem: InitialValues, rtol: float, atol: float) -> Exact:
    """Solve with a much smaller tolerance in double precision."""
    with jax.enable_x64(True):
        double = lambda x: x.astype(jnp.float64) if eqx.is_inexact_array(x) else x
        problem = jtu.tree_map(double, problem)
        tight = (max(REFERENCE * tol, LEAST_TOLERANCE) for tol in (rtol, atol))
        rtol_tight, atol_tight = tight
        # Few explicit steps are enough unless the equation is stiff.
        for solver in (dfx.Dopri8(), dfx.Kvaerno5()):
            solve = adaptive(solver, rtol_tight, atol_tight, max_steps=REFERENCE_STEPS)
            solved = problem.solve(solve)
            if np.all(solved.okay):
                return Exact(_flat(solved.y1s), rtol, atol, type(solver).__name__)
    failed = int(np.sum(~np.asarray(solved.okay)))
    raise ValueError(
        f"`vector_field` cannot be solved from {failed} of {problem.num_samples} initial states, "
        f"even with {REFERENCE_STEPS} steps. Look at `tn.diagnose` of such a solve."
    )


def _flat(y1s: Arrays) -> Float[np.ndarray, "num size"]:
    leaves = [np.asarray(x, np.float64) for x in jtu.tree_leaves(y1s)]
    return np.concatenate([x.reshape(len(x), -1) for x in leaves], axis=1)
