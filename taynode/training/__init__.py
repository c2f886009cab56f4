"""Training: configurations, one loop, checkpoints, records."""

from .._lazy import public_names


__getattr__, __dir__ = public_names(__name__, __file__)
