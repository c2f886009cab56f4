"""The cost of the backward solve of a gradient."""

from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, Int

from ._types import Args, Arrays, Rate, RealScalarLike, VectorField, Y
from .integration.control import WatchedController
from .integration.nfe import cost_of
from .solve import diffeqsolve


COUNTERS = ("num_steps", "num_accepted_steps", "num_rejected_steps", "nfe")


def backward_statistics(
    terms: Any,
    solver: dfx.AbstractSolver,
    t0: RealScalarLike,
    t1: RealScalarLike,
    dt0: RealScalarLike | Callable[..., RealScalarLike] | None,
    y0: Y,
    args: Args = None,
    *,
    cotangent: Arrays | None = None,
    penalty_cotangent: Rate | None = None,
    adjoint: dfx.AbstractAdjoint = dfx.BacksolveAdjoint(),
    **options: Any,
) -> dict[str, Int[Array, ""]]:
    """Count the steps and evaluations of the backward solve of `BacksolveAdjoint`.

    diffrax does not return them from a gradient. So this computes a gradient, in which the counts
    are the cotangent of an extra argument that no result depends on.

    **Arguments:** those of `tn.diffeqsolve`, and

    - `cotangent`: the derivative of the loss with respect to `sol.ys`; ones by default.
    - `penalty_cotangent`: the same with respect to `sol.stats["penalty"]`, such as its weight; ones
        by default.

    **Returns:**

    A dictionary of `"num_steps"`, `"num_accepted_steps"`, `"num_rejected_steps"` and `"nfe"`. One
    evaluation is that of the vector field and its vector-Jacobian product.
    """
    if not isinstance(adjoint, dfx.BacksolveAdjoint):
        raise ValueError(
            f"`adjoint` must be a `BacksolveAdjoint`, got `{type(adjoint).__name__}`. Others "
            "differentiate through the steps of the forward solve, and make no backward solve."
        )
    if not isinstance(terms, dfx.ODETerm):
        raise TypeError(f"`terms` must be an `ODETerm`, got `{type(terms).__name__}`.")
    dtype = jnp.result_type(float)
    term = dfx.ODETerm(_Uncounted(terms.vector_field))

    def solve(counters):
        sol = diffeqsolve(
            term,
            solver,
            t0,
            t1,
            dt0,
            y0,
            CountedArgs(args, counters),
            adjoint=_CountingAdjoint(**adjoint.kwargs),
            **options,
        )
        return sol.ys, sol.stats.get("penalty")

    (ys, penalty), transpose = jax.vjp(solve, jnp.zeros(len(COUNTERS), dtype))
    ones = lambda tree: jtu.tree_map(jnp.ones_like, tree)
    cotangent = ones(ys) if cotangent is None else cotangent
    penalty_cotangent = ones(penalty) if penalty_cotangent is None else penalty_cotangent
    (counts,) = transpose((cotangent, penalty_cotangent))
    return dict(zip(COUNTERS, jnp.round(counts).astype(jnp.int32), strict=True))


class CountedArgs(eqx.Module):
    """Arguments, and counters as an extra argument."""

    args: Args
    counters: Float[Array, " counters"]

    @property
    def plain_part(self) -> Args:
        """The arguments."""
        return self.args


class _Uncounted(eqx.Module):
    """A vector field of the arguments without the counters."""

    vector_field: VectorField

    def __call__(self, t: RealScalarLike, y: Y, args: CountedArgs) -> Y:
        return self.vector_field(t, y, args.args)


class _CountingAdjoint(dfx.BacksolveAdjoint):
    """Adds the counts of each segment of the backward solve to the cotangent of the counters."""

    @property
    def _diffeqsolve(self):
        return _solve_and_count


def _solve_and_count(*, solver, stepsize_controller, controller_state, **options):
    cost = cost_of(solver)
    lazy = isinstance(solver, dfx.AbstractERK | dfx.HalfSolver)
    first = controller_state is None
    watched = isinstance(stepsize_controller, WatchedController)
    # Each segment computes its first slope: Runge-Kutta solvers in their first step, and again if
    # that is rejected; others before it.
    begins_anew = lazy or not first
    if watched and first:
        stepsize_controller = WatchedController(stepsize_controller.controller, begins_anew)
    elif watched:
        controller_state = controller_state._replace(
            num_restarts=jnp.zeros_like(controller_state.num_restarts),
            restarting=jnp.ones_like(controller_state.restarting),
        )
    sol = dfx.diffeqsolve(
        solver=solver,
        stepsize_controller=stepsize_controller,
        controller_state=controller_state,
        **options,
    )
    restarts = sol.controller_state.num_restarts if watched else jnp.array(int(begins_anew))
    stats = sol.stats
    nfe = cost.attempt * stats["num_steps"] + cost.restart * restarts
    nfe = nfe + (0 if begins_anew else cost.start)
    counts = jnp.stack([jnp.asarray(stats[name]) for name in COUNTERS[:3]] + [nfe])
    get = lambda s: s.ys[2].counters
    return eqx.tree_at(get, sol, get(sol) + counts.astype(get(sol).dtype))
