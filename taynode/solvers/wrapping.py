"""What solvers and step-size controllers pass on if they wrap another one."""

from typing import Any

import equinox as eqx


class PassesOnSolver(eqx.Module):
    """The part of a solver that is the same as in the solver that it wraps."""

    solver: eqx.AbstractVar[Any]

    @property
    def term_structure(self):
        """As in the inner solver."""
        return self.solver.term_structure

    @property
    def interpolation_cls(self):
        """As in the inner solver."""
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self):
        """As in the inner solver."""
        return self.solver.term_compatible_contr_kwargs

    def order(self, terms):
        """As in the inner solver."""
        return self.solver.order(terms)

    def strong_order(self, terms):
        """As in the inner solver."""
        return self.solver.strong_order(terms)

    def error_order(self, terms):
        """As in the inner solver."""
        return self.solver.error_order(terms)

    def func(self, terms, t0, y0, args):
        """As in the inner solver."""
        return self.solver.func(terms, t0, y0, args)


class PassesOnTolerances(eqx.Module):
    """The part of a controller that is the same as in the controller that it wraps."""

    controller: eqx.AbstractVar[Any]

    @property
    def rtol(self):
        """The relative tolerance of the inner controller."""
        return self.controller.rtol

    @property
    def atol(self):
        """The absolute tolerance of the inner controller."""
        return self.controller.atol

    @property
    def norm(self):
        """The norm of the inner controller. Implicit solvers use it, too."""
        return self.controller.norm
