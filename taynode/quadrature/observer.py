"""Solvers that step as another one does, and take notes of its steps."""

import abc
from typing import Any

import diffrax as dfx
import equinox as eqx

from ..integration.integrate import integrate
from ..integration.problem import Problem
from ..integration.solution import with_fields


class AbstractObserver(dfx.AbstractWrappedSolver):
    """Steps as another solver does, and keeps a note of accepted steps in its state."""

    solver: eqx.AbstractVar[Any]

    @abc.abstractmethod
    def first_note(self, t0, y0):
        """The note before the first step."""

    @abc.abstractmethod
    def observe(self, note, t0, t1, y0, args, dense_info):
        """The note after a step. Times are in the direction of the solve, in which they grow."""

    @property
    def term_structure(self):
        """As the solver inside."""
        return self.solver.term_structure

    @property
    def interpolation_cls(self):
        """As the solver inside."""
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self):
        """As the solver inside."""
        return self.solver.term_compatible_contr_kwargs

    # diffrax sets these fields of Runge-Kutta methods and of implicit solvers, and takes a wrapped
    # solver for what it wraps.
    @property
    def scan_kind(self):
        """As the solver inside."""
        return self.solver.scan_kind

    @property
    def root_finder(self):
        """As the solver inside."""
        return self.solver.root_finder

    def order(self, terms):
        """As the solver inside."""
        return self.solver.order(terms)

    def error_order(self, terms):
        """As the solver inside."""
        return self.solver.error_order(terms)

    def func(self, terms, t0, y0, args):
        """As the solver inside."""
        return self.solver.func(terms, t0, y0, args)

    def init(self, terms, t0, t1, y0, args):
        """The state of the solver inside, and the first note."""
        return self.first_state(self.solver.init(terms, t0, t1, y0, args), t0, y0)

    def first_state(self, inner, t0, y0):
        """The same, if the state of the solver inside is known."""
        return inner, self.first_note(t0, y0)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """One step of the solver inside. diffrax forgets the note if the step is rejected."""
        inner, note = solver_state
        y1, y_error, dense_info, inner, result = self.solver.step(
            terms, t0, t1, y0, args, inner, made_jump
        )
        note = self.observe(note, t0, t1, y0, args, dense_info)
        return y1, y_error, dense_info, (inner, note), result


def integrate_observed(problem: Problem, wrap: Any) -> tuple[dfx.Solution, Any]:
    """Solve with an observer around the solver; the solution, and the last note."""
    saveat = eqx.tree_at(lambda s: s.solver_state, problem.saveat, True)
    solution = integrate(problem.replace(saveat=saveat), wrap=wrap)
    solver_state: Any = solution.solver_state
    inner, note = solver_state
    state = inner if problem.saveat.solver_state else None
    return with_fields(solution, solver_state=state), note
