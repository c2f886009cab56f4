"""Penalties on what a solver computes in a step: the common part."""

import abc
from typing import Any

import equinox as eqx
import optimistix as optx
from jaxtyping import PyTree

from .._types import Args, Norm, Rate, RealScalarLike, VectorField, Y
from .base import AbstractPartRegularizer, Setting
from .trial import Step, trial_step


class AbstractStepRegularizer(AbstractPartRegularizer):
    """A penalty on what a solver computes in a step.

    With `quadrature=tn.AcceptedSteps()` it penalizes the accepted steps of the solve itself. With
    `tn.Sampled()` it penalizes a trial step at a random point of the path. The trial step has the
    length of a first step from there, and no gradient with respect to this length. For a stochastic
    equation it is on the same Brownian path, and has the length that control chooses after a step
    of length `dt0`. The mean of the penalty is the integral over the path of what such a step would
    give, which is another number than the sum over accepted steps: those have the lengths that
    control has chosen.

    **Arguments:**

    - `rtol`, `atol`: the tolerances that errors are compared with, and that the length of trial
        steps is chosen for; by default those of the solve.
    - `where`: a function that selects the part of the state to penalize; by default all of it.
    """

    rtol: RealScalarLike | None = None
    atol: RealScalarLike | None = None
    setting: Setting | None = eqx.field(default=None, kw_only=True, repr=False)

    @abc.abstractmethod
    def of_step(self, solver: Any, step: Step) -> Rate:
        """The penalty of a step, per unit of time."""

    def in_solve(self, setting: Setting) -> "AbstractStepRegularizer":
        """Know the solver and the tolerances."""
        return eqx.tree_at(lambda r: r.setting, self, setting, is_leaf=lambda x: x is None)

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: PyTree
    ) -> tuple[Y, Rate]:
        """Compute the slope, and the penalty of a trial step."""
        del state
        name = type(self).__name__
        if self.setting is None or self.setting.first_step is None:
            raise ValueError(f"`{name}` needs a solve: pass it to `tn.diffeqsolve`.")
        step = trial_step(name, self.setting, vector_field, t, y, args, *self.tolerances)
        return vector_field(t, y, args), self.of_step(self.setting.solver, step)

    @property
    def tolerances(self) -> tuple[RealScalarLike, RealScalarLike]:
        """The tolerances: those given, or those of the solve."""
        known = self.setting
        inherited = (None, None) if known is None else (known.rtol, known.atol)
        rtol = inherited[0] if self.rtol is None else self.rtol
        atol = inherited[1] if self.atol is None else self.atol
        if rtol is None or atol is None:
            raise ValueError(
                f"`{type(self).__name__}` needs tolerances, and a solve with fixed steps has none: "
                "pass `rtol=` and `atol=` to it."
            )
        return rtol, atol

    @property
    def norm(self) -> Norm:
        """The norm of step-size control."""
        known = None if self.setting is None else self.setting.norm
        return optx.rms_norm if known is None else known
