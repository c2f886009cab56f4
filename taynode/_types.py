"""The types of the library, named as in diffrax."""

from collections.abc import Callable
from typing import Any, TYPE_CHECKING, TypeAlias

import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PyTree, Real, Shaped


# Type checkers do not know shapes. At run time they are checked.
if TYPE_CHECKING:
    BoolScalarLike: TypeAlias = bool | Array | np.ndarray
    FloatScalarLike: TypeAlias = float | Array | np.ndarray
    IntScalarLike: TypeAlias = int | Array | np.ndarray
    RealScalarLike: TypeAlias = int | float | Array | np.ndarray
else:
    BoolScalarLike = Bool[ArrayLike, ""]
    FloatScalarLike = Float[ArrayLike, ""]
    IntScalarLike = Int[ArrayLike, ""]
    RealScalarLike = Real[ArrayLike, ""]

# A result, which is always an array.
RealScalar: TypeAlias = Real[Array, ""]
# Within one function, all of type `Y` have the same structure and the same shapes.
Y: TypeAlias = PyTree[Shaped[ArrayLike, "?*y"], "Y"]
Args: TypeAlias = PyTree[Any]
VectorField: TypeAlias = Callable[[RealScalarLike, Y, Args], Y]
# A pytree of arrays whose structure and shapes are not those of the state.
Arrays: TypeAlias = PyTree[Shaped[ArrayLike, "..."]]
Norm: TypeAlias = Callable[[PyTree], RealScalarLike]
# The rate of a penalty, or its integral: a number, or a pytree of numbers or arrays.
Rate: TypeAlias = Arrays
