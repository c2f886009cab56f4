"""Neural differential equations that are cheap to solve."""

from ._lazy import public_names as _public_names


__version__ = "0.2.0"
__getattr__, __dir__ = _public_names(__name__, __file__)
__all__ = __dir__()  # pyright: ignore[reportUnsupportedDunderAll]
