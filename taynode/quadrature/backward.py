"""The gradient of the penalty without its value."""

import diffrax as dfx
import equinox as eqx
import equinox.internal as eqxi
from jaxtyping import PRNGKeyArray

from ..integration.problem import Problem
from ..regularizers import AbstractRegularizer
from .augmented_state import AugmentedField
from .augmenting import augment, solve_augmented, takes_any_state
from .base import AbstractQuadrature, Penalized
from .costate import CostateField


class Backward(AbstractQuadrature):
    """Computes the gradient of the penalty without its value, as the paper's released code does.

    The forward solve is that of the plain system. The rate is evaluated in the backward pass only.
    So the penalty is NaN and `stats["penalty_known"]` is `False`. If the loss is linear in the
    penalty, its gradient is that of `Augmented`. Log the loss without the penalty.

    The paper uses this with `diffrax.BacksolveAdjoint`. It works with all reverse-mode adjoints.
    """

    def solve(
        self, problem: Problem, regularizer: AbstractRegularizer, key: PRNGKeyArray | None
    ) -> Penalized:
        """Solve the plain system, with the gradient of the augmented one."""
        _check(problem)
        why = "With `quadrature=Backward()`, whose penalty has no value,"
        t0, t1 = (
            eqxi.nondifferentiable(t, name=f"{why} `{name}`")
            for name, t in (("t0", problem.t0), ("t1", problem.t1))
        )
        problem = problem.replace(t0=t0, t1=t1)
        field = augment(self, problem, regularizer, key)
        solution, integral, _, _ = solve_augmented(problem, field, _costate(field, problem))
        return Penalized(solution, integral, 0, known=False)


def _check(problem: Problem) -> None:
    name = type(problem.solver).__name__
    if not problem.is_ode:
        raise ValueError(
            "`quadrature=Backward()` needs `terms` to be an `ODETerm`, got a "
            f"`{type(problem.terms).__name__}`; pass `term.to_ode()` if it is a `ControlTerm`, or "
            "use `Augmented()` or `Sampled()`."
        )
    if isinstance(problem.adjoint, dfx.ForwardMode):
        raise ValueError(
            "`quadrature=Backward()` exists in reverse-mode differentiation only, so it cannot "
            "be used with `adjoint=ForwardMode()`; use `Augmented()` or `Sampled()`."
        )
    if isinstance(problem.solver, dfx.AbstractImplicitSolver):
        raise ValueError(
            "`quadrature=Backward()` exists in reverse-mode differentiation only, and the "
            f"implicit `solver` `{name}` differentiates in forward mode; use `Augmented()` or "
            "`Sampled()`."
        )
    if not takes_any_state(problem.solver):
        raise ValueError(
            "`quadrature=Backward()` solves for a larger state than `y0`, and the `step` of "
            f"`solver={name}()`, which is not one of diffrax or taynode, may need that of `y0`; "
            "use `Augmented()` or `Sampled()`."
        )
    if problem.event is not None and problem.event.root_finder is not None:
        raise ValueError(
            "`quadrature=Backward()` does not know the penalty's value, so it cannot "
            "differentiate for the time of an `event` with a `root_finder`; use `Augmented()` "
            "or `Sampled()`."
        )


def _costate(field: AugmentedField, problem: Problem) -> CostateField:
    """The vector field whose penalty has a derivative but no value."""
    if isinstance(field.plain_part, eqx.Module):
        return CostateField(field)
    # A function may close over parameters. They need gradients, too.
    vector_field = eqx.filter_closure_convert(
        field.plain_part, problem.t0, problem.y0, problem.args
    )
    return CostateField(eqx.tree_at(lambda f: f.term.vector_field, field, vector_field))
