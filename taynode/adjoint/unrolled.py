"""Steps of explicit Runge-Kutta methods without a loop over stages."""

from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import PyTree

from .._types import Y
from ..solvers.explicit import has_usual_steps
from ..solvers.wrapping import PassesOnSolver
from .names import FIRST_SLOPE, KEPT_SLOPE, SLOPE


class _Known(eqx.Module):
    """Stands for the flag of diffrax that the first slope is unknown. It is never set."""


class Unrolled(PassesOnSolver, dfx.AbstractSolver):
    """Makes the steps of an explicit Runge-Kutta method.

    Diffrax loops over stages. Reverse mode then evaluates each stage once more for its step, and
    again for itself. Without the loop, it skips the latter.
    """

    solver: Any

    @property
    def tableau(self):
        """As in the inner solver."""
        return self.solver.tableau

    def init(self, terms, t0, t1, y0, args):
        """As in the inner solver."""
        return self.solver.init(terms, t0, t1, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """Make a step."""
        tableau = self.solver.tableau
        control = terms.contr(t0, t1)
        if solver_state is None:
            evaluate = _traced_once(terms, lambda t, y: terms.vf_prod(t, y, args, control))
            product = lambda k: k
            last = evaluate(t0, y0)
        else:
            evaluate = _traced_once(terms, lambda t, y: terms.vf(t, y, args))
            product = lambda slope: terms.prod(slope, control)
            last = _first_slope(terms, evaluate, t0, y0, solver_state[1], made_jump)
        stages, y1 = [product(last)], y0
        for weights, c in zip(tableau.a_lower, tableau.c, strict=True):
            y1 = _combination(weights, stages, y0)
            # No rounding of the time at the end.
            slope = evaluate(t1 if c == 1 else t0 + float(c) * (t1 - t0), y1)
            last = checkpoint_name(slope, SLOPE)
            stages.append(product(last))
        if not tableau.ssal:
            y1 = _combination(tableau.b_sol, stages, y0)
        error = _combination(tableau.b_error, stages)
        dense_info = {"y0": y0, "y1": y1, "k": jtu.tree_map(lambda *k: jnp.stack(k), *stages)}
        state = None if solver_state is None else (_Known(), last)
        return y1, error, dense_info, state, dfx.RESULTS.successful


def unrolled(solver: Any) -> Any:
    """Unroll the stages of a solver, or of the solver that it wraps, if possible."""
    if _keeps_inner_state(solver):
        return eqx.tree_at(lambda s: s.solver, solver, unrolled(solver.solver))
    return Unrolled(solver) if has_usual_steps(solver) else solver


def _keeps_inner_state(solver: Any) -> bool:
    return type(solver) is dfx.HalfSolver or hasattr(solver, "map_inner_state")


def with_first_slope(
    solver: Any, state: PyTree, is_first: bool, evaluate: Callable[[], PyTree]
) -> PyTree:
    """Convert the first state of a solver to that of its unrolled version.

    **Arguments:**

    - `solver`: the unrolled solver.
    - `is_first`: whether the first slope is unknown for sure. Otherwise the state says so.
    - `evaluate`: evaluates the vector field at the start.
    """
    convert = lambda s: with_first_slope(solver.solver, s, is_first, evaluate)
    if type(solver) is dfx.HalfSolver:
        return convert(state)
    if hasattr(solver, "map_inner_state"):
        return solver.map_inner_state(convert, state)
    if not isinstance(solver, Unrolled) or state is None:
        return state
    flag, slope = state
    if is_first:
        return _Known(), evaluate()
    if flag is False:
        return _Known(), slope
    return _Known(), lax.cond(eqxi.unvmap_any(flag), evaluate, lambda: slope)


def with_flag(state: PyTree) -> PyTree:
    """Convert the state of an unrolled solver back to that of diffrax."""
    is_known = lambda x: isinstance(x, _Known)
    return jtu.tree_map(lambda x: jnp.array(False) if is_known(x) else x, state, is_leaf=is_known)


def _combination(weights: np.ndarray, stages: list[Y], start: Y | None = None) -> Y:
    """The combination of stages, added to `start`."""
    used = [(float(w), stage) for w, stage in zip(weights, stages, strict=True) if w != 0]
    if not used:
        return jtu.tree_map(jnp.zeros_like, stages[0]) if start is None else start
    total = lambda *leaves: sum(w * x for (w, _), x in zip(used, leaves, strict=True))
    increment = jtu.tree_map(total, *(stage for _, stage in used))
    return increment if start is None else jtu.tree_map(jnp.add, start, increment)


def _first_slope(
    terms: Any, evaluate: Callable, t0: Any, y0: Y, kept: PyTree, made_jump: Any
) -> PyTree:
    if made_jump is not False:
        # The vector field may jump after its last evaluation.
        again, same = lambda y, _: evaluate(t0, y), lambda _, slope: slope
        return lax.cond(eqxi.unvmap_any(made_jump), again, same, y0, kept)
    if _is_ode(terms):
        # In the forward pass, this is not evaluated.
        checkpoint_name(evaluate(t0, y0), FIRST_SLOPE)
    return checkpoint_name(kept, KEPT_SLOPE)


def _traced_once(terms: Any, evaluate: Callable) -> Callable:
    """Trace a vector field once for all stages. Other equations may have operators as values."""
    return jax.jit(evaluate) if _is_ode(terms) else evaluate


def _is_ode(terms: Any) -> bool:
    return isinstance(getattr(terms, "term", terms), dfx.ODETerm)
