"""An estimate of stiffness from the stages of a step."""

from typing import Any

import jax.numpy as jnp
import jax.tree_util as jtu

from .._types import RealScalar
from .base import Setting
from .step import AbstractStepRegularizer
from .trial import Step


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

    def in_solve(self, setting: Setting) -> AbstractStepRegularizer:
        """Know the solver and the tolerances."""
        setting.refuse_noise("Stiffness", "the stages of a step contain noise")
        return super().in_solve(setting)

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
