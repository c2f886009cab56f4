"""The errors that a failed solve raises."""

from typing import Any

import diffrax as dfx
import equinox as eqx
import equinox.internal as eqxi
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Bool

from .._types import Rate
from .last_point import LastPoint


LOOK = (
    "To see where and why, solve again with `throw=False` and pass the solution to `tn.diagnose`."
)
# Suggestions for each result of diffrax.
RESULTS: list[tuple[Any, str]] = [
    (
        dfx.RESULTS.max_steps_reached,
        "the vector field may be too wild for this tolerance. Raise the weight of the regularizer, "
        "loosen `rtol` and `atol`, or raise `max_steps`.",
    ),
    (
        dfx.RESULTS.dt_min_reached,
        "the step size fell below `dtmin`. The vector field may have a jump or a pole, or the "
        "tolerance is below what the precision can resolve.",
    ),
    (
        dfx.RESULTS.nonfinite,
        "the state is finite, but the penalty is infinite or NaN. A derivative of the vector field "
        "overflows: use a lower `order`, double precision, or smooth activations.",
    ),
]
# More specific causes, from the end of the solve. The first that applies is reported.
NAN_STATE = (
    "the state is NaN or infinite. Look for NaN in `y0` and `args`, and for a division by zero, a "
    "logarithm or a root of something negative in the vector field."
)
NAN_STEP = (
    "the last attempted step met NaN or infinity. The vector field returns NaN there (a "
    "division by zero, a logarithm or a root of something negative), or the solution blows up."
)
STUCK = (
    "the step size fell until time stood still. The vector field has a jump or a pole, or the "
    "tolerance is below what the precision can resolve."
)


def raise_if_failed(solution: dfx.Solution) -> dfx.Solution:
    """Raise an error if a solve failed, with the message of diffrax and a likely cause."""
    point = (solution.stats or {}).get("last_point")
    causes = [] if point is None else _causes(point)
    result, cause = jnp.array(len(RESULTS)), jnp.array(len(causes))
    for i, (item, _) in enumerate(RESULTS):
        result = jnp.where(solution.result == item, i, result)
    for i, (applies, _) in reversed(list(enumerate(causes))):
        cause = jnp.where(applies, i, cause)
    messages = [
        f"{dfx.RESULTS[item]} taynode: {text} {LOOK}"
        for item, advice in RESULTS
        for text in [*(text for _, text in causes), advice]
    ]
    known = result < len(RESULTS)
    index = jnp.where(known, result * (len(causes) + 1) + cause, 0)
    solution = eqxi.branched_error_if(solution, known, index, messages)
    return solution.result.error_if(solution, jnp.invert(dfx.is_okay(solution.result)))


def _causes(point: LastPoint) -> list[tuple[Bool[Array, ""], str]]:
    return [
        (jnp.invert(point.state_finite), NAN_STATE),
        (jnp.invert(point.error_finite), NAN_STEP),
        (point.is_stuck, STUCK),
    ]


def with_nonfinite_penalty(solution: dfx.Solution, penalty: Rate) -> dfx.Solution:
    """Set the result of a successful solve to `nonfinite` if its penalty is not finite."""
    finite = [jnp.all(jnp.isfinite(x)) for x in jtu.tree_leaves(penalty)]
    failed = jnp.invert(jnp.all(jnp.stack(finite))) & dfx.is_okay(solution.result)
    nonfinite: Any = dfx.RESULTS.nonfinite
    result = dfx.RESULTS.where(failed, nonfinite, solution.result)
    return eqx.tree_at(lambda s: s.result, solution, result)
