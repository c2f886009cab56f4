"""Neural differential equations that are cheap to solve."""

from ._lazy import public_names


__version__ = "0.2.0"
__getattr__, __dir__ = public_names(__name__, __file__)
