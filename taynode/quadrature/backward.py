"""The gradient of the penalty without its value."""

from typing import Any

import diffrax as dfx
import equinox as eqx
import equinox.internal as eqxi

from .._types import Key
from ..integration.problem import Problem
from .augmented_state import AugmentedField
from .augmenting import AbstractAugmented
from .base import Penalized
from .costate import CostateField


class Backward(AbstractAugmented):
    """The released code's trick: the gradient of the penalty without its value.

    Forwards the plain system is solved; the rate enters where derivatives are taken. The penalty
    reads 0, with `stats["penalty_known"]` False, and has the gradient of `Augmented`, if the loss
    is linear in the penalty. For `diffrax.BacksolveAdjoint`, where the paper used it, and equally
    for the other adjoints that differentiate in reverse.
    """

    def moving(self, field: AugmentedField, problem: Problem) -> Any:
        """The penalty moves in the derivatives alone."""
        if isinstance(problem.adjoint, dfx.ForwardMode):
            raise ValueError(
                "`quadrature=Backward()` exists in reverse-mode differentiation only, so it cannot "
                "be used with `adjoint=ForwardMode()`; use `Augmented()` or `Sampled()`."
            )
        if isinstance(problem.solver, dfx.AbstractImplicitSolver):
            raise ValueError(
                "`quadrature=Backward()` exists in reverse-mode differentiation only, and the "
                f"implicit `solver` `{type(problem.solver).__name__}` differentiates in forward "
                "mode; use `Augmented()` or `Sampled()`."
            )
        if problem.event is not None and problem.event.root_finder is not None:
            raise ValueError(
                "`quadrature=Backward()` does not know the penalty's value, so it cannot "
                "differentiate for the time of an `event` with a `root_finder`; use `Augmented()` "
                "or `Sampled()`."
            )
        if isinstance(field.plain_part, eqx.Module):
            return CostateField(field)
        # A function may close over the parameters that one differentiates for.
        vector_field = eqx.filter_closure_convert(
            field.plain_part, problem.t0, problem.y0, problem.args
        )
        return CostateField(eqx.tree_at(lambda f: f.term.vector_field, field, vector_field))

    def solve(self, problem: Problem, regularizer: Any, key: Key | None) -> Penalized:
        """Solve, and report that the value of the penalty is not known."""
        why = "With `quadrature=Backward()`, whose penalty has no value,"
        t0, t1 = (
            eqxi.nondifferentiable(t, name=f"{why} `{name}`")
            for name, t in (("t0", problem.t0), ("t1", problem.t1))
        )
        problem = problem.replace(t0=t0, t1=t1)
        solution, penalty, _, _ = super().solve(problem, regularizer, key)
        return Penalized(solution, penalty, 0, known=False)
