"""The lab: tasks, training, sweeps, reports and the command line, built on top of the library."""

from .._lazy import public_names as _public_names


__getattr__, __dir__ = _public_names(__name__, __file__)
__all__ = __dir__()  # pyright: ignore[reportUnsupportedDunderAll]
