"""Penalties on what a solver computes in a step: the common part."""

import abc
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import PyTree

from .._types import Args, Arrays, Norm, Rate, RealScalar, RealScalarLike, VectorField, Y
from .base import AbstractPartRegularizer, Setting


class Step(NamedTuple):
    """A step of a solver.

    - `t0`, `t1`: its times.
    - `y0`, `y1`: the states before and after it.
    - `error`: the error estimate of the solver; `None` if it has none.
    - `increments`: the slope of each stage times the length of the step, in front of the axes of
        the state; `None` if the solver is not a Runge-Kutta method.
    """

    t0: RealScalar
    t1: RealScalar
    y0: Y
    y1: Y
    error: Y | None
    increments: Arrays | None


class AbstractStepRegularizer(AbstractPartRegularizer):
    """A penalty on what a solver computes in a step.

    With `quadrature=tn.AcceptedSteps()` it penalizes the accepted steps of the solve itself. With
    `tn.Sampled()` it penalizes a trial step at a random point of the path. The trial step has the
    length of a first step from there, and no gradient with respect to this length. Its mean is the
    integral over the path of what such a step would give, which is another number than the sum over
    accepted steps: those have the lengths that control has chosen.

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
        solver = self.setting.solver
        if not issubclass(type(solver), dfx.AbstractERK):
            raise TypeError(
                f"`{name}` makes a trial step, which `solver={type(solver).__name__}()` cannot do "
                "from any point; use an explicit Runge-Kutta method such as `diffrax.Dopri5()`, or "
                "`quadrature=tn.AcceptedSteps()`."
            )
        length = self.setting.first_step(vector_field, t, y, args, *self.tolerances)
        end, term = t + jax.lax.stop_gradient(length), dfx.ODETerm(vector_field)
        made = solver.step(term, t, end, y, args, solver.init(term, t, end, y, args), False)
        return vector_field(t, y, args), self.of_step(solver, step_of(t, end, y, made))

    @property
    def tolerances(self) -> tuple[RealScalarLike, RealScalarLike]:
        """The tolerances: those given, or those of the solve."""
        inherited = (None, None) if self.setting is None else self.setting[3:5]
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


def step_of(t0: RealScalarLike, t1: RealScalarLike, y0: Y, made: tuple) -> Step:
    """The step from what the method `step` of a solver returns."""
    y1, error, dense_info, _, _ = made
    return Step(jnp.asarray(t0), jnp.asarray(t1), y0, y1, error, dense_info.get("k"))
