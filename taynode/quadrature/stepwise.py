"""The integral over each step of a solver, from the dense output of the step."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from .._types import Rate, RealScalarLike
from ..integration.problem import Problem
from ..regularizers.trial import Step
from .augmented_state import AugmentedField, zero_penalty
from .base import Penalized
from .observer import AbstractObserver, integrate_observed


class StepIntegrator(AbstractObserver):
    """Adds the integral of the rate over each step, by Gauss-Legendre quadrature."""

    solver: dfx.AbstractSolver
    field: AugmentedField
    zero: Rate
    direction: RealScalarLike
    points: int = eqx.field(static=True)

    def first_note(self, t0, y0):
        """An integral of zero."""
        del t0, y0
        return self.zero

    def observe(self, note, step: Step, args, dense_info):
        """Add the integral over the step."""
        t0, t1 = step.t0, step.t1
        path = self.solver.interpolation_cls(t0=t0, t1=t1, **dense_info)
        nodes, weights = np.polynomial.legendre.leggauss(self.points)
        times = t0 + (t1 - t0) * jnp.asarray((nodes + 1) / 2, t0.dtype)

        def rate_at(t):
            _, rate = self.field(t * self.direction, (path.evaluate(t), note), args)
            return rate

        def add(integral, rates):
            mean = jnp.tensordot(jnp.asarray(weights / 2, rates.dtype), rates, axes=1)
            return integral + (t1 - t0).astype(rates.dtype) * mean

        return jtu.tree_map(add, note, jax.vmap(rate_at)(times))


def integrate_stepwise(problem: Problem, field: AugmentedField) -> Penalized:
    """Solve the plain system, and integrate the rate over each step."""
    name = type(problem.solver).__name__
    why = f"`terms` is a `{type(problem.terms).__name__}`"
    if problem.is_ode:
        why = f"`solver={name}()` is not one of diffrax or taynode"
    if problem.is_backsolve:
        raise ValueError(
            f"{why}, so `quadrature=Augmented()` integrates over single steps, which "
            "`adjoint=BacksolveAdjoint()` cannot differentiate; use `quadrature=tn.Sampled()`, or "
            "`adjoint=RecursiveCheckpointAdjoint()`."
        )
    if problem.event is not None and problem.event.root_finder is not None:
        raise ValueError(
            f"{why}, so `quadrature=Augmented()` integrates over whole steps, but an "
            "`event` with a `root_finder` ends within one; use `quadrature=tn.Sampled()`."
        )
    # Gauss-Legendre quadrature of the order of the solver. For noise, two points will do.
    order = 0 if problem.is_stochastic else problem.solver.order(problem.terms) or 0
    points = max(2, -(-order // 2))
    zero = zero_penalty(field, problem.t0, problem.y0, problem.args)
    wrap = lambda solver: StepIntegrator(solver, field, zero, problem.direction, points)
    solution, integral = integrate_observed(problem, wrap)
    return Penalized(solution, integral, points * solution.stats["num_steps"])
