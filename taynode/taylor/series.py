"""Arithmetic on the coefficients of truncated Taylor series.

A coefficient is an array, or `None` where it is zero by structure: a parameter has no coefficient
above order 0, and time has none above order 1. `None` propagates through every function here, so a
structural zero never becomes an operation. XLA does not remove products with a matrix of zeros.

All coefficients are normalized: `u[k]` is the k-th derivative divided by k!.
"""

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.interpreters.ad import zeros_like_aval
from jax.typing import ArrayLike, DTypeLike


# Constants of a jaxpr may be NumPy arrays or Python numbers.
Coefficient = ArrayLike | None


class Series:
    """The coefficients of one variable, as far as they are known.

    A constant has its value at order 0 and reads as zero above. Any other coefficient that was not
    computed or not kept raises an error when it is read: a rule that reads it has a bug.
    """

    __slots__ = ("coefficients", "constant")

    def __init__(self, coefficients: Iterable[Any] = (), *, constant: bool = False):
        self.coefficients: dict[int, Any] = dict(enumerate(coefficients))
        self.constant = constant

    def __getitem__(self, k: int) -> Any:
        if self.constant and k >= 1:
            return None
        return self.coefficients[k]

    def __setitem__(self, k: int, coefficient: Any) -> None:
        self.coefficients[k] = coefficient


def scale(x: Coefficient, factor: int | float) -> Coefficient:
    """`factor * x` for a Python number, in the dtype of `x`."""
    if x is None or factor == 1:
        return x
    return _with_number(lax.mul, x, factor)


def divide(x: Coefficient, divisor: int | float) -> Coefficient:
    """`x / divisor` for a Python number: rounded once, unlike a product with the reciprocal."""
    if x is None or divisor == 1:
        return x
    return _with_number(lax.div, x, divisor)


def _with_number(op, x, number):
    dtype = jnp.result_type(x)
    if abs(number) <= float(jnp.finfo(dtype).max):
        return op(x, typed(number, x))
    # A factorial may overflow float16 where the result does not.
    wide = lax.convert_element_type(x, jnp.float32)
    return lax.convert_element_type(op(wide, typed(number, wide)), dtype)


def negate(x: Coefficient) -> Coefficient:
    """`-x`."""
    return None if x is None else lax.neg(x)


def add(x: Coefficient, y: Coefficient) -> Coefficient:
    """`x + y`."""
    if x is None:
        return y
    if y is None:
        return x
    return lax.add(x, y)


def subtract(x: Coefficient, y: Coefficient) -> Coefficient:
    """`x - y`."""
    if y is None:
        return x
    return negate(y) if x is None else lax.sub(x, y)


def multiply(x: Coefficient, y: Coefficient) -> Coefficient:
    """`x * y`."""
    return None if x is None or y is None else lax.mul(x, y)


def quotient(x: Coefficient, y: Any) -> Coefficient:
    """`x / y`."""
    return None if x is None else lax.div(x, y)


def convolve(u, v, k: int, start: int, stop: int) -> Coefficient:
    """The sum of `u[j] * v[k - j]` over `start <= j <= stop`."""
    total = None
    for j in range(start, stop + 1):
        total = add(total, multiply(u[j], v[k - j]))
    return total


def convolve_self(u, k: int, start: int = 0) -> Coefficient:
    """The sum of `u[j] * u[k - j]` over `start <= j <= k - start`, each pair formed once."""
    total = None
    for j in range(start, (k + 1) // 2):
        total = add(total, multiply(u[j], u[k - j]))
    total = scale(total, 2)
    if k % 2 == 0 and k // 2 >= start:
        total = add(total, multiply(u[k // 2], u[k // 2]))
    return total


def instantiate(x: Coefficient, aval: Any) -> Any:
    """Convert `x` to the shape of the type `aval`: a structural zero becomes an array of zeros."""
    if x is None:
        # Unlike `jnp.zeros`, this keeps the sharding, inside `shard_map` too.
        return zeros_like_aval(aval)
    if np.shape(x) != aval.shape:
        return jnp.broadcast_to(x, aval.shape)
    return x


def cast(x: Array, dtype: DTypeLike) -> Array:
    """Convert `x` to a dtype; a weakly typed array of that dtype stays weakly typed."""
    return x if x.dtype == dtype else x.astype(dtype)


def typed(factor: int | float, x: Any) -> Any:
    """Convert a Python number to a scalar that preserves the dtype and weak type of `x`.

    A NumPy scalar becomes a literal of the jaxpr, not an equation.
    """
    if getattr(x, "weak_type", False):
        return complex(factor) if jnp.iscomplexobj(x) else float(factor)
    return np.asarray(float(factor), dtype=x.dtype)[()]
