"""Neural differential equations that are cheap to solve."""

from . import solvers as solvers
from .taylor import (
    jet as jet,
    NoDerivativeError as NoDerivativeError,
    register_rule as register_rule,
    solution_derivatives as solution_derivatives,
    taylor_coefficients as taylor_coefficients,
)


__version__ = "0.1.0"
