"""Integrals of the polynomial through the last slopes of an Adams method.

With past points t_0 > t_1 > ... and the end t_end of the step, the polynomial has Newton's form: a
sum of c_j times the product over i < j of (t - t_i) / (t_end - t_i). In this scaling, and with
constant steps, the c_j are backward differences.
"""

from typing import ClassVar

import diffrax as dfx
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Shaped

from .._types import Arrays, RealScalar, RealScalarLike, Y


def newton_integrals(
    gaps: Float[Array, " n"], step: RealScalarLike, length: RealScalar
) -> Float[Array, " n+1"]:
    """Integrals of Newton's products from the last point t_0 to t_0 + length.

    **Arguments:**

    - `gaps`: t_0 - t_i.
    - `step`: t_end - t_0.
    - `length`: the length of the interval.

    **Returns:**

    The integrals of the products of 0, ..., n factors. A Gauss rule is exact for them. It is free
    of the cancellation of the usual recurrence, since all factors are positive from t_0 to t_end.
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(gaps) // 2 + 1)
    nodes, weights = (jnp.asarray(x / 2, gaps.dtype) for x in (nodes + 1, weights))
    factors = quotient(gaps + length * nodes[:, None], gaps + step)
    products = jnp.concatenate([jnp.ones_like(factors[:, :1]), jnp.cumprod(factors, 1)], 1)
    return length * jnp.sum(weights[:, None] * products, 0)


def quotient(numerator: Array, denominator: Array) -> Array:
    """The quotient. For a denominator of zero, it and its gradient are zero."""
    empty = denominator == 0
    return jnp.where(empty, 0, numerator / jnp.where(empty, 1, denominator))


def combine(weights: Float[Array, " n"], tree: Arrays) -> Arrays:
    """Weighted sums over the first axis of each leaf."""
    product = lambda x: jnp.tensordot(
        weights.astype(x.dtype), x, axes=1, precision=lax.Precision.HIGHEST
    )
    return jtu.tree_map(product, tree)


def along_first(weights: Shaped[Array, " n"], leaf: Array) -> Array:
    """Reshape weights or a mask so that they broadcast along the first axis of a leaf."""
    dtype = weights.dtype if weights.dtype == bool else leaf.dtype
    return weights.astype(dtype).reshape(-1, *(1,) * (leaf.ndim - 1))


class AdamsInterpolation(dfx.AbstractLocalInterpolation):
    """Dense output: the integral of the polynomial of the step, which has the same order.

    It ends in the result of the step. `shared` names the parts that all rows of a batch share.
    """

    shared: ClassVar[tuple[str, ...]] = ("gaps",)

    t0: RealScalarLike
    t1: RealScalarLike
    y0: Y
    gaps: Float[Array, " n"]
    coefficients: Arrays

    def evaluate(self, t0, t1=None, left: bool = True):
        """The state at `t0`, or its increment from `t0` to `t1`."""
        del left
        if t1 is not None:
            return jtu.tree_map(jnp.subtract, self.evaluate(t1), self.evaluate(t0))
        weights = newton_integrals(self.gaps, self.t1 - self.t0, jnp.asarray(t0 - self.t0))
        return jtu.tree_map(jnp.add, self.y0, combine(weights, self.coefficients))
