"""Explicit Runge-Kutta methods whose steps are known."""

from typing import Any

import diffrax as dfx


def has_usual_steps(solver: Any) -> bool:
    """Whether a solver is an explicit Runge-Kutta method with the steps of diffrax.

    Such a step is given by the tableau. A user's class may have a `step` of its own.
    """
    # A wrapper is an instance of the classes of what it wraps.
    is_wrapper = isinstance(solver, dfx.AbstractWrappedSolver)
    if is_wrapper or not isinstance(solver, dfx.AbstractERK):
        return False
    has_own_step = type(solver).step is not dfx.AbstractRungeKutta.step
    return isinstance(solver.tableau, dfx.ButcherTableau) and not has_own_step
