"""The number of function evaluations: what each solver spends, and when."""

from typing import Any, NamedTuple

import diffrax as dfx
import jax.numpy as jnp

from ..solvers import Adams


class Cost(NamedTuple):
    """Evaluations of the vector field by a solver.

    An attempt is a step, accepted or rejected. A restart is an attempt that begins behind a jump of
    the vector field, where first-same-as-last solvers cannot use the last slope.
    """

    attempt: int
    start: int
    restart: int
    exact: bool = True


def cost_of(solver: Any) -> Cost:
    """What a solver spends. For implicit solvers: solves of stages, which is not exact."""
    if isinstance(solver, dfx.HalfSolver):
        attempt, start, restart, exact = cost_of(solver.solver)
        # A whole step and two halves; the whole step and the first half begin at the same point.
        return Cost(3 * attempt, start, 2 * restart, exact)
    if isinstance(solver, Adams):
        return Cost(attempt=2, start=1, restart=1)
    if isinstance(solver, dfx.AbstractERK):
        tableau: Any = solver.tableau
        reused = int(tableau.fsal)
        return Cost(tableau.num_stages - reused, start=reused, restart=reused)
    if isinstance(solver, dfx.ReversibleHeun):
        return Cost(attempt=1, start=1, restart=1)
    if isinstance(solver, dfx.Euler | dfx.LeapfrogMidpoint | dfx.SemiImplicitEuler):
        return Cost(attempt=1, start=0, restart=0)
    return Cost(_num_stages(solver), start=0, restart=0, exact=False)


def _num_stages(solver: Any) -> int:
    tableau = getattr(solver, "tableau", None)
    tableaus = getattr(tableau, "tableaus", (tableau,))
    return max(getattr(t, "num_stages", 1) for t in tableaus)


def takes_first_slope(solver: Any) -> bool:
    """Whether the vector field at the start, evaluated elsewhere, can be handed to the solver."""
    cost = cost_of(solver)
    return cost.exact and cost.start == 1


def state_from_slope(solver: Any, terms: Any, t0: Any, y0: Any, args: Any, slope: Any) -> Any:
    """The first state of a solver that begins with this slope."""
    if isinstance(solver, dfx.HalfSolver):
        return state_from_slope(solver.solver, terms, t0, y0, args, slope)
    if isinstance(solver, Adams):
        return solver.init_from_slope(terms, t0, t0, y0, args, slope)
    if isinstance(solver, dfx.ReversibleHeun):
        return y0, slope
    # Runge-Kutta: not the first step, as far as the solver need know, and the last slope.
    return jnp.array(False), slope
