"""Which derivative of the solution best predicts the evaluations of a solver."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Arrays
from ..models import Solve
from ..quadrature import Augmented
from ..ranks import rank_correlation
from ..regularizers import TotalDerivative
from .problem import InitialValues


ORDERS = (2, 3, 4, 5)
USUAL = 3
# Correlations below the first number are noise. A higher order costs more, so its correlation must
# be better by the second.
LEAST_CORRELATION, MARGIN = 0.3, 0.1
# Evaluations that differ by less tell nothing.
LEAST_SPREAD = 0.01


def order_correlations(problem: InitialValues, solve: Solve) -> dict[int, float]:
    """The rank correlation of R_K with the evaluations of a solver, over samples, for each K.

    Empty if all samples need the same evaluations.
    """
    penalties, nfe = _penalties(problem, solve)
    counts = np.asarray(nfe, float)
    if np.std(counts) < LEAST_SPREAD * np.mean(counts) or len(counts) < 3:
        return {}
    return {order: rank_correlation(np.asarray(penalties[order]), counts) for order in ORDERS}


def best_order(correlations: dict[int, float]) -> int:
    """The lowest order that is almost as good as the best one."""
    most = max(correlations.values(), default=0.0)
    if not most > LEAST_CORRELATION:
        return USUAL
    return min(order for order, value in correlations.items() if value >= most - MARGIN)


@eqx.filter_jit
def _penalties(
    problem: InitialValues, solve: Solve
) -> tuple[dict[int, Float[Array, "num"]], Float[Array, "num"]]:
    """R_K of each sample, and its evaluations."""
    regularizers = {order: TotalDerivative(order) for order in ORDERS}
    penalized = eqx.tree_at(
        lambda s: (s.regularizer, s.quadrature),
        solve,
        (regularizers, Augmented()),
        is_leaf=lambda x: x is None,
    )

    def each(y0: Arrays) -> tuple[dict[int, Array], Array]:
        sol = penalized(problem.vector_field, y0, problem.args, t0=problem.t0, t1=problem.t1)
        return sol.stats["penalty"], jnp.asarray(sol.stats["nfe"], float)

    return jax.vmap(each)(problem.y0s)
