"""Penalties on what a solver computes in a step."""

import abc
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
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
    length of a first step from there, and no gradient with respect to this length.

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


class ErrorEstimate(AbstractStepRegularizer):
    r"""The error estimate of the solver, in units of the tolerance.

    The penalty is $\sum_j E_j |h_j|$ over steps of length $h_j$, where $E_j$ is the norm by which
    step-size control decides. With `tn.AcceptedSteps()` it costs next to nothing. Control keeps
    $E_j$ near a constant, so the value hardly depends on the number of steps.

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

        def scaled(error, y0, y1):
            dtype = jnp.finfo(jnp.result_type(y0)).dtype
            allowed = jnp.asarray(atol, dtype) + jnp.asarray(rtol, dtype) * jnp.maximum(
                jnp.abs(y0), jnp.abs(y1)
            )
            return error / allowed

        parts = (self.where(x) for x in (step.error, step.y0, step.y1))
        return jnp.asarray(self.norm(jtu.tree_map(scaled, *parts)))


class Stiffness(AbstractStepRegularizer):
    r"""An estimate of stiffness: how strongly the vector field responds to the state.

    Two stages $x$ and $y$ at the end of a step differ in their states $g$ and slopes $k$. The
    estimate is $|k_x - k_y| / |g_x - g_y|$, about the largest eigenvalue of the Jacobian that
    matters. The penalty is its integral over time.

    Reference: Pal, Ma, Shah and Rackauckas, Opening the Blackbox, ICML 2021.

    **Arguments:**

    - `rtol`, `atol`: the tolerances that the length of trial steps is chosen for; by default those
        of the solve.
    - `where`: a function that selects the part of the state to penalize; by default all of it.
    """

    def of_step(self, solver: Any, step: Step) -> RealScalar:
        """The difference of slopes over the difference of states."""
        tableau = getattr(solver, "tableau", None)
        at_end = [] if tableau is None else [i for i, c in enumerate(tableau.c) if c == 1]
        if len(at_end) < 2 or step.increments is None:
            raise ValueError(
                "`Stiffness` needs a Runge-Kutta method with two stages at the end of a step, and "
                f"`{type(solver).__name__}` is none; use `diffrax.Dopri5()` or `diffrax.Tsit5()`."
            )
        first, second = at_end[-2:]
        difference = lambda k: k[second + 1] - k[first + 1]
        slopes = jtu.tree_map(difference, step.increments)
        weights = [tableau.a_lower[i] for i in (first, second)]

        def apart(k):
            a, b = (jnp.tensordot(jnp.asarray(w, k.dtype), k[: len(w)], axes=1) for w in weights)
            return b - a

        states = jtu.tree_map(apart, step.increments)
        sizes = [jnp.asarray(self.norm(self.where(x))) for x in (slopes, states)]
        # At rest both are zero.
        still = sizes[1] == 0
        ratio = jnp.where(still, 0.0, sizes[0] / jnp.where(still, 1.0, sizes[1]))
        return ratio / jnp.abs(step.t1 - step.t0).astype(ratio.dtype)


def step_of(t0: RealScalarLike, t1: RealScalarLike, y0: Y, made: tuple) -> Step:
    """The step from what the method `step` of a solver returns."""
    y1, error, dense_info, _, _ = made
    return Step(jnp.asarray(t0), jnp.asarray(t1), y0, y1, error, dense_info.get("k"))
