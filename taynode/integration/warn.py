"""Warnings that point to the user's code."""

import sys
import warnings


# The package itself, the decorators around its functions, and the transformations around those.
INTERNAL = ("taynode", "jaxtyping", "beartype", "equinox", "jax")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, with the nearest line outside of the package as the place.

    `stacklevel` cannot do this: the number of frames in between depends on who calls, and on the
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


def _is_internal(frame) -> bool:
    generated = frame.f_code.co_filename.startswith("<@beartype")
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    return generated or package in INTERNAL
