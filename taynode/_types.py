"""The vocabulary of types that the package speaks."""

from collections.abc import Callable
from typing import Any, TypeAlias

from jaxtyping import PyTree


Y: TypeAlias = PyTree[Any]
Args: TypeAlias = PyTree[Any]
Key: TypeAlias = Any
Scalar: TypeAlias = Any
VectorField: TypeAlias = Callable[[Scalar, Y, Args], Y]
