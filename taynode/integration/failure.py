"""When a solve fails: what is said, and what can be found out."""

from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import optimistix as optx

from ..taylor import NoDerivativeError, solution_derivatives


LOOK = (
    "To see where and why, solve again with `throw=False` and pass the solution to `tn.diagnose`."
)
HINTS = [
    (
        dfx.RESULTS.max_steps_reached,
        "taynode: the vector field may be too wild for this tolerance. Raise the weight of "
        f"the regularizer, loosen `rtol` and `atol`, or raise `max_steps`. {LOOK}",
    ),
    (
        dfx.RESULTS.dt_min_reached,
        "taynode: the step size fell until time stood still. The vector field returns NaN, has a "
        f"jump or a pole, or the tolerance is below what the precision can resolve. {LOOK}",
    ),
    (
        dfx.RESULTS.nonfinite,
        "taynode: the solve went well, but the penalty is infinite or NaN. A derivative of the "
        "vector field overflows: use a lower `order`, double precision, or smooth activations. "
        f"{LOOK}",
    ),
]


def raise_if_failed(solution: dfx.Solution) -> dfx.Solution:
    """Raise for a solve that failed: the text of diffrax, and a hint."""
    index = jnp.array(len(HINTS))
    messages = []
    for i, (result, hint) in enumerate(HINTS):
        index = jnp.where(solution.result == result, i, index)
        messages.append(f"{dfx.RESULTS[result]} {hint}")
    messages.append(f"The solve failed. {LOOK}")
    known = index < len(HINTS)
    solution = eqxi.branched_error_if(solution, known, index, messages)
    return solution.result.error_if(solution, jnp.invert(dfx.is_okay(solution.result)))


def with_nonfinite_penalty(solution: dfx.Solution, penalty: Any) -> dfx.Solution:
    """Mark a solve that went well but whose penalty is not finite."""
    finite = [jnp.all(jnp.isfinite(x)) for x in jtu.tree_leaves(penalty)]
    failed = jnp.invert(jnp.all(jnp.stack(finite))) & dfx.is_okay(solution.result)
    nonfinite: Any = dfx.RESULTS.nonfinite
    result = dfx.RESULTS.where(failed, nonfinite, solution.result)
    return eqx.tree_at(lambda s: s.result, solution, result)


class LastPoint(NamedTuple):
    """Where a solve ended, and how large things are there, as root mean squares."""

    time: Any
    next_step: Any
    state: Any
    slope: Any
    acceleration: Any


def last_point(field: Any, args: Any, t: Any, y: Any, next_step: Any, failed: Any) -> LastPoint:
    """Derivatives at the last point, computed if any sample of the batch has failed."""
    dtype = jnp.result_type(*jtu.tree_leaves(y))
    size = lambda tree: optx.rms_norm(tree).astype(jnp.finfo(dtype).dtype)

    t, y, next_step = jax.lax.stop_gradient((t, y, next_step))
    dynamic, static = eqx.partition((field, args), eqx.is_array)
    field, args = eqx.combine(jax.lax.stop_gradient(dynamic), static)
    unknown = jnp.full((), jnp.nan, jnp.finfo(dtype).dtype)

    def derivatives():
        try:
            return tuple(size(x) for x in solution_derivatives(field, t, y, args, order=2))
        except NoDerivativeError:
            return size(field(t, y, args)), unknown

    slope, acceleration = jax.lax.cond(
        eqxi.unvmap_any(failed), derivatives, lambda: (unknown, unknown)
    )
    return LastPoint(t, next_step, size(y), slope, acceleration)
