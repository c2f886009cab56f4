"""The cost and the true error of solvers at several tolerances."""

import dataclasses
import math
import time

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from ..models import Solve
from .problem import adaptive, Exact, InitialValues


# Tolerances to try, in units of the accuracy that is asked for: from loose to tight, in steps of
# half a decade, and between the last that is too loose and the next one in smaller steps.
SCALES = 10.0 ** np.arange(3, -6.5, -0.5)
BETWEEN = 10.0 ** np.array([-1 / 6, -1 / 3])
LOOSEST = 0.3
TIMED = 3


@dataclasses.dataclass(frozen=True)
class Measured:
    """A solver with a tolerance, and what it costs.

    - `solver`: the name of the solver.
    - `rtol`, `atol`: its tolerances; `None` on a fixed grid.
    - `nfe`: the mean evaluations of a sample.
    - `rejected`: the share of steps that were rejected.
    - `error`: the root mean square of the true error, in units of the accuracy that is asked for.
    - `worst`: the largest error of a sample.
    - `seconds`: the time of all samples together; NaN if it was not measured.
    - `num_failed`: samples whose solve failed.
    - `solve`: the solver with its settings.
    """

    solver: str
    rtol: float | None
    atol: float | None
    nfe: float
    rejected: float
    error: float
    worst: float
    seconds: float
    num_failed: int
    solve: Solve = dataclasses.field(repr=False)

    @property
    def is_accurate(self) -> bool:
        """Whether the error is as small as it was asked for."""
        return self.num_failed == 0 and self.error <= 1


def name_of(solver: dfx.AbstractSolver) -> str:
    """The name of a solver, with that of the solver that it wraps."""
    name, inner = type(solver).__name__, getattr(solver, "solver", None)
    return name if inner is None else f"{name}({name_of(inner)})"


def measure(problem: InitialValues, exact: Exact, solve: Solve, *, timed: int = TIMED) -> Measured:
    """Solve, and compare with the exact solutions. The time is the median of `timed` solves."""
    solved = jax.block_until_ready(problem.solve(solve))
    times = []
    for _ in range(timed):
        start = time.perf_counter()
        jax.block_until_ready(problem.solve(solve))
        times.append(time.perf_counter() - start)
    okay = np.asarray(solved.okay)
    errors = np.where(okay, exact.error(solved.y1s), np.inf)
    controller = solve.stepsize_controller if solve.num_steps is None else None
    # A controller with steps of its own has no tolerances.
    rtol, atol = (getattr(controller, name, None) for name in ("rtol", "atol"))
    return Measured(
        solver=name_of(solve.solver),
        rtol=None if rtol is None else float(rtol),
        atol=None if atol is None else float(atol),
        nfe=float(np.mean(np.asarray(solved.nfe, float))),
        rejected=float(np.sum(solved.num_rejected) / max(1, np.sum(solved.num_steps))),
        error=float(np.sqrt(np.mean(errors**2))),
        worst=float(np.max(errors)),
        seconds=float(np.median(times)) if times else math.nan,
        num_failed=int(np.sum(~okay)),
        solve=solve,
    )


def work_precision(
    problem: InitialValues,
    exact: Exact,
    solver: dfx.AbstractSolver,
    *,
    max_steps: int,
    timed: int = TIMED,
) -> list[Measured]:
    """Measure a solver from loose to tight tolerances, until two in a row are accurate enough."""
    dtype = jnp.result_type(*jtu.tree_leaves(problem.y0s))
    least = 10 * float(jnp.finfo(dtype).eps)

    def at(scale: float) -> Measured:
        rtol, atol = scale * exact.rtol, scale * exact.atol
        solve = adaptive(solver, rtol, atol, max_steps=max_steps)
        return measure(problem, exact, solve, timed=timed)

    course: list[Measured] = []
    scales = [s for s in SCALES if least <= s * exact.rtol <= LOOSEST]
    for scale in scales:
        course.append(at(scale))
        if all(found.is_accurate for found in course[-2:]) and len(course) > 1:
            break
    loose = 1 + max((i for i, found in enumerate(course) if not found.is_accurate), default=-1)
    # Everything is accurate enough, or nothing is.
    if loose in (0, len(course)):
        return course
    return [*course[:loose], *(at(scales[loose - 1] * step) for step in BETWEEN), *course[loose:]]


def cheapest_tolerance(course: list[Measured]) -> Measured | None:
    """The loosest tolerance that is accurate, and so are all tighter ones; `None` without one."""
    chosen = None
    for found in reversed(course):
        if not found.is_accurate:
            break
        chosen = found
    return chosen
