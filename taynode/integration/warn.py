"""Warnings that point to the user's code."""

import sys
import warnings
from types import FrameType


# This package, the decorators of its functions, and the transformations of JAX.
INTERNAL = ("taynode", "jaxtyping", "beartype", "equinox", "jax")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the nearest line of the caller outside of the package.

    `stacklevel` cannot do this: the number of frames in between varies, for example with the
    decorators of run-time type checkers.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_internal(frame):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _is_internal(frame: FrameType) -> bool:
    generated = frame.f_code.co_filename.startswith("<@beartype")
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    return generated or package in INTERNAL
