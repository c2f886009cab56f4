"""A sum over the accepted steps of the solve itself."""

from typing import Any

import diffrax as dfx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import PRNGKeyArray

from .._types import Rate
from ..integration.problem import Problem
from ..regularizers.combine import Combined
from ..regularizers.trial import Step
from .base import AbstractQuadrature, Penalized
from .observer import AbstractObserver, integrate_observed


class StepPenalty(AbstractObserver):
    """Adds the penalty of each step."""

    solver: dfx.AbstractSolver
    regularizer: Any
    zero: Rate

    def first_note(self, t0, y0):
        """A sum of zero."""
        del t0, y0
        return self.zero

    def observe(self, note, step: Step, args, dense_info):
        """Add the penalty of the step."""
        del args, dense_info
        length, rates = step.t1 - step.t0, self.regularizer.of_step(self.solver, step)
        return jtu.tree_map(lambda x, r: x + length.astype(r.dtype) * r, note, rates)


class AcceptedSteps(AbstractQuadrature):
    """Sums what the solver computes in its accepted steps, which costs next to nothing.

    It needs regularizers such as `tn.ErrorEstimate()` and `tn.Stiffness()`, and no key. Steps and
    values of the solve stay as they are. A step that an event ends early counts as a whole.

    Gradients need an adjoint that differentiates the steps, such as the default one.
    """

    def solve(self, problem: Problem, regularizer: Combined, key: PRNGKeyArray | None) -> Penalized:
        """Solve, and add up the penalties of accepted steps."""
        del key
        if problem.is_backsolve:
            raise ValueError(
                "`quadrature=AcceptedSteps()` penalizes the solver's steps, which "
                "`adjoint=BacksolveAdjoint()` does not differentiate; use the default adjoint, or "
                "`quadrature=tn.Sampled()`."
            )
        dtype = jnp.finfo(jnp.result_type(*jtu.tree_leaves(problem.y0))).dtype
        zero = regularizer.zero_of_steps(dtype)
        wrap = lambda solver: StepPenalty(solver, regularizer, zero)
        solution, total = integrate_observed(problem, wrap)
        return Penalized(solution, total, solution.stats["num_steps"])
