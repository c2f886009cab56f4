"""The error estimate of a step."""

from typing import Any

from .._types import RealScalar
from ..solvers.tolerance import scaled_norm
from .step import AbstractStepRegularizer
from .trial import Step


class ErrorEstimate(AbstractStepRegularizer):
    r"""The error estimate of the solver, in units of the tolerance.

    The penalty is $\sum_j E_j |h_j|$ over steps of length $h_j$, where $E_j$ is the norm by which
    step-size control decides. With `tn.AcceptedSteps()` it costs next to nothing. Control keeps
    $E_j$ near a constant, so the value hardly depends on the number of steps. It is also defined
    for stochastic equations, with solvers that estimate errors, such as `diffrax.SPaRK()`,
    `diffrax.Heun()`, `diffrax.ShARK()` for additive noise, and `diffrax.HalfSolver(...)`.

    References: Pal, Ma, Shah and Rackauckas, Opening the Blackbox, ICML 2021 (accepted steps); Pal,
    Edelman and Rackauckas, Locally Regularized Neural Differential Equations, ICML 2023 (a trial
    step).

    **Arguments:**

    - `rtol`, `atol`: the tolerances that errors are compared with; by default those of the solve.
    - `where`: a function that selects the part of the state to penalize; by default all of it.
    """

    def of_step(self, solver: Any, step: Step) -> RealScalar:
        """The norm of the error estimate."""
        if step.error is None:
            raise ValueError(
                f"`ErrorEstimate` needs the error estimate of a step, and `{type(solver).__name__}`"
                " has none; use a solver such as `diffrax.Dopri5()`."
            )
        rtol, atol = self.tolerances
        error, y0, y1 = (self.where(x) for x in (step.error, step.y0, step.y1))
        return scaled_norm(error, y0, y1, rtol, atol, self.norm)
