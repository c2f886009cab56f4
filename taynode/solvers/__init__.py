"""Explicit solvers that diffrax lacks, each tested for its order in two ways."""

from .._lazy import public_names as _public_names


# Each is imported when it is first used: their coefficients are computed, and few need them all.
__getattr__, __dir__ = _public_names(__name__, __file__)
__all__ = __dir__()  # pyright: ignore[reportUnsupportedDunderAll]
