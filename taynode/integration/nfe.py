"""The number of function evaluations (NFE) of each solver."""

from typing import Any, NamedTuple

import diffrax as dfx
import jax.numpy as jnp
from jaxtyping import PyTree

from .._types import Args, Arrays, RealScalarLike, Y
from ..solvers import Adams


class Cost(NamedTuple):
    """The evaluations of the vector field by a solver.

    - `attempt`: the evaluations of each attempted step, accepted or rejected.
    - `start`: those before the first step.
    - `restart`: those added to an attempt after a jump of the vector field, where
        first-same-as-last solvers cannot use the last slope.
    - `exact`: whether these counts are exact.
    """

    attempt: int
    start: int
    restart: int
    exact: bool = True


def cost_of(solver: dfx.AbstractSolver) -> Cost:
    """The cost of a solver. For implicit solvers it counts stages, which is not exact."""
    if isinstance(solver, dfx.HalfSolver):
        return _halved(cost_of(solver.solver))
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


def costs_of(solver: dfx.AbstractSolver, terms: Any) -> list[Cost]:
    """The cost of a solver for each term of a `MultiTerm`, such as drift and diffusion.

    Other equations have one cost. Evaluations at the same point of a stage count once, as for the
    products of the diffusion with an increment and with its Levy area.
    """
    if not isinstance(terms, dfx.MultiTerm):
        return [cost_of(solver)]
    if isinstance(solver, dfx.HalfSolver):
        return [_halved(cost) for cost in costs_of(solver.solver, terms)]
    if isinstance(solver, dfx.EulerHeun):
        return [Cost(attempt=1, start=0, restart=0), Cost(attempt=2, start=0, restart=0)]
    if isinstance(solver, dfx.AbstractSRK):
        tableau = solver.tableau
        evaluated = lambda skipped: len(tableau.b_sol) - int(0 if skipped is None else sum(skipped))
        # Additive noise is evaluated at both ends of the step.
        noise = 2 if tableau.is_additive_noise() else evaluated(tableau.ignore_stage_g)
        numbers = evaluated(tableau.ignore_stage_f), noise
        return [Cost(attempt=number, start=0, restart=0) for number in numbers]
    return [cost_of(solver)] * len(terms.terms)


def _halved(cost: Cost) -> Cost:
    """A whole step and two half steps. The whole step and the first half start the same."""
    attempt, start, restart, exact = cost
    return Cost(3 * attempt, start, 2 * restart, exact)


def _num_stages(solver: dfx.AbstractSolver) -> int:
    tableau = getattr(solver, "tableau", None)
    tableaus = getattr(tableau, "tableaus", (tableau,))
    return max(getattr(t, "num_stages", 1) for t in tableaus)


def takes_first_slope(solver: dfx.AbstractSolver) -> bool:
    """Whether the solver can use a given value of the vector field at the start."""
    cost = cost_of(solver)
    return cost.exact and cost.start == 1


def state_from_slope(
    solver: dfx.AbstractSolver,
    terms: dfx.AbstractTerm,
    t0: RealScalarLike,
    y0: Y,
    args: Args,
    slope: Arrays,
) -> PyTree:
    """The first state of a solver, with this value of the vector field at the start."""
    if isinstance(solver, dfx.HalfSolver):
        return state_from_slope(solver.solver, terms, t0, y0, args, slope)
    if isinstance(solver, Adams):
        return solver.init_from_slope(terms, t0, t0, y0, args, slope)
    if isinstance(solver, dfx.ReversibleHeun):
        return y0, slope
    # The state of Runge-Kutta methods: whether this is the first step, and the last slope.
    return jnp.array(False), slope
