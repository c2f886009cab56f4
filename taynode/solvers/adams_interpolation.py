"""Integrals of the polynomial through the last slopes of an Adams method.

With the past points t_0 > t_1 > ... and the end of the step t_end, the polynomial is written in
Newton's form, as a sum of c_j times the product over i < j of (t - t_i) / (t_end - t_i). In this
scaling, and with constant steps, the c_j are backward differences.
"""

from typing import Any

import diffrax as dfx
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax import lax

from .._types import RealScalarLike, Y


def newton_integrals(gaps: Any, step: RealScalarLike, length: RealScalarLike) -> Any:
    """Integrals of Newton's products from the last point t_0 to t_0 + length.

    **Arguments:**

    - `gaps`: t_0 - t_i, of shape `(n,)`.
    - `step`: t_end - t_0.
    - `length`: how far to integrate.

    **Returns:**

    The `n + 1` integrals of the products of 0, ..., n factors. A Gauss rule is exact for them, and
    free of the cancellation of the usual recurrence: from t_0 to t_end all factors are positive.
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(gaps) // 2 + 1)
    nodes, weights = (jnp.asarray(x / 2, gaps.dtype) for x in (nodes + 1, weights))
    factors = quotient(gaps + length * nodes[:, None], gaps + step)
    products = jnp.concatenate([jnp.ones_like(factors[:, :1]), jnp.cumprod(factors, 1)], 1)
    return length * jnp.sum(weights[:, None] * products, 0)


def quotient(numerator: Any, denominator: Any) -> Any:
    """The quotient, or zero, also as a gradient, for denominators of zero."""
    empty = denominator == 0
    return jnp.where(empty, 0, numerator / jnp.where(empty, 1, denominator))


def combine(weights: Any, tree: Any) -> Any:
    """Sums over the first axis of every leaf."""
    product = lambda x: jnp.tensordot(
        weights.astype(x.dtype), x, axes=1, precision=lax.Precision.HIGHEST
    )
    return jtu.tree_map(product, tree)


def along_first(weights: Any, leaf: Any) -> Any:
    """Weights or a mask along the first axis of a leaf, ready to be broadcast."""
    dtype = weights.dtype if weights.dtype == bool else leaf.dtype
    return weights.astype(dtype).reshape(-1, *(1,) * (leaf.ndim - 1))


class AdamsInterpolation(dfx.AbstractLocalInterpolation):
    """Dense output: the integral of the polynomial from which the step was computed.

    It ends in the result of the step, and is as accurate between: its order is that of the step.
    """

    t0: Any
    t1: Any
    y0: Y
    gaps: Any
    coefficients: Any

    def evaluate(self, t0, t1=None, left: bool = True):
        """The state at `t0`, or its increment from `t0` to `t1`."""
        del left
        if t1 is not None:
            return jtu.tree_map(jnp.subtract, self.evaluate(t1), self.evaluate(t0))
        weights = newton_integrals(self.gaps, self.t1 - self.t0, t0 - self.t0)
        return jtu.tree_map(jnp.add, self.y0, combine(weights, self.coefficients))
