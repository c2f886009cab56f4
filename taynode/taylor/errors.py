"""The error for functions without a derivative."""

import importlib.util
import os
from typing import Any


class NoDerivativeError(NotImplementedError):
    """A primitive between input and output has neither a Taylor rule nor a JVP rule."""


def _folder(module: str) -> str:
    spec = importlib.util.find_spec(module)
    return os.path.dirname(spec.origin) + os.sep if spec and spec.origin else os.devnull


# Messages name a line of the user's code, not one of these packages.
_HIDDEN = ("<", *(_folder(module) for module in ("jax", "equinox", "jaxtyping", "taynode")))


def _location(equation: Any) -> str:
    """Return the innermost line of the user's code, as `file:line (function)`."""
    for eqn in (equation.eqn, *equation.callers):
        for frame in getattr(eqn.source_info.traceback, "frames", ()):
            if not frame.file_name.startswith(_HIDDEN):
                return f"{frame.file_name}:{frame.line_num} ({frame.function_name})"
    if equation.origin is None:
        return "an unknown place"
    whole = equation.origin.primitive.name
    return f"{_location(equation.origin)} as part of the derivative of `{whole}`"


def no_derivative(equation: Any, cause: Exception) -> NoDerivativeError:
    """Return the error for an equation that cannot be differentiated."""
    name = equation.primitive.name
    detail = str(cause).strip().splitlines()
    return NoDerivativeError(
        f"`{name}`, used at {_location(equation)}, has no derivative: "
        f"JAX says {type(cause).__name__}: {detail[0] if detail else 'nothing more'}\n"
        "Give the function around it a derivative with `jax.custom_jvp`, or register a Taylor rule "
        f"with `taynode.register_rule`. If `{name}` is not meant to be differentiated, wrap its "
        "inputs in `jax.lax.stop_gradient`."
    )
