"""Solvers that wrap another one and observe its steps."""

import abc
from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
from jaxtyping import PyTree

from ..integration.integrate import integrate
from ..integration.problem import Problem
from ..integration.solution import with_fields
from ..regularizers.trial import Step, step_of
from ..solvers.wrapping import PassesOnSolver


class AbstractObserver(PassesOnSolver, dfx.AbstractWrappedSolver):
    """Makes the steps of an inner solver, and keeps a note of accepted steps in its state."""

    solver: eqx.AbstractVar[Any]

    @abc.abstractmethod
    def first_note(self, t0, y0):
        """The note before the first step."""

    @abc.abstractmethod
    def observe(self, note, step: Step, args, dense_info):
        """The note after a step. Times increase, also in a solve backward in time."""

    # diffrax sets these fields of Runge-Kutta methods and implicit solvers, also if they are
    # wrapped.
    @property
    def scan_kind(self):
        """As in the inner solver."""
        return self.solver.scan_kind

    @property
    def root_finder(self):
        """As in the inner solver."""
        return self.solver.root_finder

    def init(self, terms, t0, t1, y0, args):
        """The state of the inner solver, and the first note."""
        return self.first_state(self.solver.init(terms, t0, t1, y0, args), t0, y0)

    def first_state(self, inner, t0, y0):
        """The first state, from that of the inner solver."""
        return inner, self.first_note(t0, y0)

    def map_inner_state(self, convert, state):
        """Convert the state of the inner solver. `tn.AcceptedStepAdjoint` needs this."""
        inner, note = state
        return convert(inner), note

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """Make a step of the inner solver. diffrax discards the note of a rejected step."""
        inner, note = solver_state
        made = self.solver.step(terms, t0, t1, y0, args, inner, made_jump)
        y1, y_error, dense_info, inner, result = made
        note = self.observe(note, step_of(t0, t1, y0, made), args, dense_info)
        return y1, y_error, dense_info, (inner, note), result


def integrate_observed(
    problem: Problem, wrap: Callable[[dfx.AbstractSolver], AbstractObserver]
) -> tuple[dfx.Solution, PyTree]:
    """Solve with an observer around the solver, and return the solution and the last note."""
    saveat = eqx.tree_at(lambda s: s.solver_state, problem.saveat, True)
    solution = integrate(problem.replace(saveat=saveat), wrap=wrap)
    solver_state: Any = solution.solver_state
    inner, note = solver_state
    state = inner if problem.saveat.solver_state else None
    return with_fields(solution, solver_state=state), note
