"""Neural differential equations that are cheap to solve."""

from .taylor import jet as jet
from .taylor import NoDerivativeError as NoDerivativeError
from .taylor import register_rule as register_rule
from .taylor import solution_derivatives as solution_derivatives
from .taylor import taylor_coefficients as taylor_coefficients


__version__ = "0.1.0"
