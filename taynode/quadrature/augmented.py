"""The integral as one more component of the state."""

from jaxtyping import PRNGKeyArray

from ..integration.problem import Problem
from ..regularizers import AbstractRegularizer
from .augmenting import augment, solve_augmented, takes_any_state
from .base import AbstractQuadrature, Penalized
from .stepwise import integrate_stepwise


class Augmented(AbstractQuadrature):
    """Integrates the rate together with the state, as the paper does.

    The penalty is as accurate as the solution. The rate is evaluated at each stage of the solver,
    so a solve costs several times that of the plain system. `Sampled` is far cheaper for training.
    Step-size control ignores the penalty, forward and backward.

    The `step` of a solver that is neither in diffrax nor in taynode may need the structure of `y0`,
    so it steps the plain system only. The rate is then integrated over each step by Gauss-Legendre
    quadrature, with states from the dense output of the solver. So it is for a `ControlTerm` and a
    `MultiTerm`, whose steps are made with the increments of controls and of Brownian motion.
    """

    def solve(
        self, problem: Problem, regularizer: AbstractRegularizer, key: PRNGKeyArray | None
    ) -> Penalized:
        """Solve for the state and the integral."""
        field = augment(self, problem, regularizer, key)
        if problem.is_ode and takes_any_state(problem.solver):
            return solve_augmented(problem, field, field)
        return integrate_stepwise(problem, field)
