"""Dormand and Prince's method with its stages written out, which is cheaper to differentiate."""

from collections.abc import Callable
from typing import Any, ClassVar

import diffrax as dfx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.tree_util as jtu


class UnrolledDopri5(dfx.AbstractERK):
    """`diffrax.Dopri5`, step for step, but faster to differentiate backwards.

    Diffrax loops over the stages of a step. Reverse mode evaluates each stage once forwards, once
    more for the step that it belongs to, and a third time for itself. Without a loop it need not do
    the last. What is paid for it: a vector field that is compiled seven times, and a memory of
    seven stages instead of one.
    """

    tableau: ClassVar[Any] = dfx.Dopri5.tableau
    interpolation_cls: ClassVar[Callable[..., Any]] = dfx.Dopri5.interpolation_cls

    def order(self, terms):
        """The order of the result."""
        del terms
        return 5

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """One step, its error, and what is needed to interpolate in it and to go on."""
        if solver_state is None:
            # A control that is dear to multiply with, as of a controlled equation.
            return super().step(terms, t0, t1, y0, args, solver_state, made_jump)
        control = terms.contr(t0, t1)
        is_first, slope = solver_state
        # The last slope is that of the next step, unless the vector field jumps in between.
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
            # No rounding at the end.
            slope = terms.vf(t1 if c == 1 else t0 + float(c) * (t1 - t0), y1, args)
            stages.append(terms.prod(slope, control))
        error = _combination(self.tableau.b_error, stages)
        dense_info = {"y0": y0, "y1": y1, "k": jtu.tree_map(lambda *k: jnp.stack(k), *stages)}
        return y1, error, dense_info, (False, slope), dfx.RESULTS.successful


def _combination(weights: Any, stages: list[Any]) -> Any:
    used = [(float(w), stage) for w, stage in zip(weights, stages, strict=True) if w != 0]
    total = lambda *leaves: sum(w * x for (w, _), x in zip(used, leaves, strict=True))
    return jtu.tree_map(total, *(stage for _, stage in used))
