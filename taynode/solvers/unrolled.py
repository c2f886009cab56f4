"""Dormand and Prince's method without a loop over stages, which is cheaper to differentiate."""

from typing import ClassVar

import diffrax as dfx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from .._types import Y


class UnrolledDopri5(dfx.AbstractERK):
    """`diffrax.Dopri5` with the same steps, but faster in reverse mode.

    Diffrax loops over the stages of a step. Reverse mode then evaluates each stage three times: in
    the forward solve, again for its step, and again for itself. Without the loop, it skips the
    last. In exchange, the vector field is compiled seven times, and the backward pass stores seven
    stages instead of one.
    """

    tableau: ClassVar[dfx.ButcherTableau] = dfx.Dopri5.tableau
    interpolation_cls: ClassVar = dfx.Dopri5.interpolation_cls

    def order(self, terms):
        """The order of the method."""
        del terms
        return 5

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """Make one step."""
        if solver_state is None:
            # The control is expensive to multiply with, as in a controlled equation.
            return super().step(terms, t0, t1, y0, args, solver_state, made_jump)
        control = terms.contr(t0, t1)
        is_first, slope = solver_state
        # The last slope is the first of the next step, unless the vector field jumps in between.
        slope = jax.lax.cond(
            eqxi.unvmap_any(is_first | made_jump),
            lambda y, _: terms.vf(t0, y, args),
            lambda _, slope: slope,
            y0,
            slope,
        )
        stages, y1 = [terms.prod(slope, control)], y0
        for weights, c in zip(self.tableau.a_lower, self.tableau.c, strict=True):
            y1 = jtu.tree_map(jnp.add, y0, _combination(weights, stages))
            # No rounding of the time at the end.
            slope = terms.vf(t1 if c == 1 else t0 + float(c) * (t1 - t0), y1, args)
            stages.append(terms.prod(slope, control))
        error = _combination(self.tableau.b_error, stages)
        dense_info = {"y0": y0, "y1": y1, "k": jtu.tree_map(lambda *k: jnp.stack(k), *stages)}
        return y1, error, dense_info, (False, slope), dfx.RESULTS.successful


def _combination(weights: np.ndarray, stages: list[Y]) -> Y:
    used = [(float(w), stage) for w, stage in zip(weights, stages, strict=True) if w != 0]
    total = lambda *leaves: sum(w * x for (w, _), x in zip(used, leaves, strict=True))
    return jtu.tree_map(total, *(stage for _, stage in used))
