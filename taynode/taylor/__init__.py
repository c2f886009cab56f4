"""Taylor-mode differentiation of JAX programs, order by order."""

from .custom import register_rule as register_rule
from .errors import NoDerivativeError as NoDerivativeError
from .expansions import jet as jet
from .expansions import solution_derivatives as solution_derivatives
from .expansions import taylor_coefficients as taylor_coefficients
