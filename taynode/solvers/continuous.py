"""Dense output of explicit Runge-Kutta methods, derived from the order conditions.

The weights of a continuous extension are polynomials in the fraction theta of the step,
y(t0 + theta dt) = y0 + sum over i of b_i(theta) k_i. It has order q if, for each tree with r <= q
nodes, the sum of b times the elementary weights is theta^r over the density. These conditions are
linear in the coefficients of the polynomials. Of all solutions, the one of least norm is taken.
"""

from collections.abc import Sequence
from typing import ClassVar, TYPE_CHECKING

import diffrax as dfx
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from .._types import Arrays, RealScalarLike, Y
from .trees import density, elementary_weights, trees


if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar


Weights = Sequence[int | float]
Rows = Sequence[Weights]


def stage_matrix(tableau: dfx.ButcherTableau) -> np.ndarray:
    """The coefficients of the stages as a square matrix."""
    a = np.zeros((tableau.num_stages, tableau.num_stages))
    for i, row in enumerate(tableau.a_lower, start=1):
        a[i, : len(row)] = row
    return a


def continuous_weights(tableau: dfx.ButcherTableau, *, order: int, degree: int) -> np.ndarray:
    """Coefficients of theta, theta^2, ... (columns) in the weight of each stage (rows).

    The extension starts with the slope of the first stage and ends in the result of the step. If
    the last stage is the slope there, it ends with that slope, so the solution is smooth across
    steps.
    """
    a, num_stages = stage_matrix(tableau), tableau.num_stages
    rows, values = [], []

    def require(row: np.ndarray, value: float) -> None:
        rows.append(row.reshape(-1))
        values.append(value)

    for num_nodes in range(1, order + 1):
        for tree in trees(num_nodes):
            weights = elementary_weights(tree, a)
            for power in range(1, degree + 1):
                row = np.zeros((num_stages, degree))
                row[:, power - 1] = weights
                require(row, 1 / density(tree) if power == num_nodes else 0.0)
    for stage in range(num_stages):
        end, start_slope, end_slope = (np.zeros((num_stages, degree)) for _ in range(3))
        end[stage] = 1
        require(end, tableau.b_sol[stage])
        if degree >= 3:
            start_slope[stage, 0] = 1
            require(start_slope, float(stage == 0))
            if tableau.fsal:
                end_slope[stage] = np.arange(1, degree + 1)
                require(end_slope, float(stage == num_stages - 1))
    matrix, right = np.stack(rows), np.array(values)
    solution = np.linalg.lstsq(matrix, right, rcond=None)[0]
    defect = np.max(np.abs(matrix @ solution - right))
    if defect > 1e-9:
        raise ValueError(
            f"No continuous extension of order {order} and degree {degree}: defect {defect:.1e}."
        )
    return solution.reshape(num_stages, degree)


class AbstractContinuousExtension(dfx.AbstractLocalInterpolation):
    """Dense output by weights that are polynomials in the fraction of the step."""

    weights: AbstractClassVar[np.ndarray]

    t0: RealScalarLike
    t1: RealScalarLike
    y0: Y
    k: Arrays

    def __init__(self, *, t0, t1, y0, y1, k):
        del y1  # the weights lead to it
        self.t0, self.t1, self.y0, self.k = t0, t1, y0, k

    def evaluate(self, t0, t1=None, left: bool = True):
        """The state at `t0`, or its increment from `t0` to `t1`."""
        del left
        if t1 is not None:
            return jtu.tree_map(jnp.subtract, self.evaluate(t1), self.evaluate(t0))
        length = self.t1 - self.t0
        # A step of length zero occurs where a solve ends.
        theta = jnp.where(length == 0, 0.0, (t0 - self.t0) / jnp.where(length == 0, 1.0, length))

        def interpolate(y, k):
            powers = theta ** jnp.arange(1, self.weights.shape[1] + 1, dtype=theta.dtype)
            stages = jnp.asarray(self.weights, theta.dtype) @ powers
            return y + jnp.tensordot(stages.astype(k.dtype), k, axes=1)

        return jtu.tree_map(interpolate, self.y0, self.k)


def continuous_extension(
    tableau: dfx.ButcherTableau, *, order: int, degree: int
) -> type[AbstractContinuousExtension]:
    """The dense output of a method, with weights from `continuous_weights`."""

    class ContinuousExtension(AbstractContinuousExtension):
        weights: ClassVar[np.ndarray] = continuous_weights(tableau, order=order, degree=degree)

    return ContinuousExtension


def with_last_slope(a: Rows, b_sol: Weights, b_error: Weights) -> dfx.ButcherTableau:
    """A tableau with the slope at the end of the step as one more stage, for dense output.

    It is the first stage of the next step, so it costs one evaluation per solve.
    """
    return tableau([*a, b_sol], [*b_sol, 0.0], [*b_error, 0.0])


def tableau(a: Rows, b_sol: Weights, b_error: Weights) -> dfx.ButcherTableau:
    """A tableau from the rows of A below the first, the weights, and those of the error."""
    return dfx.ButcherTableau(
        a_lower=tuple(np.array(row) for row in a),
        b_sol=np.array(b_sol),
        b_error=np.array(b_error),
        c=np.array([sum(row) for row in a]),
    )
