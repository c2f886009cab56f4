"""Taylor-mode differentiation of JAX programs, order by order."""

from .expansions import jet as jet
from .expansions import solution_derivatives as solution_derivatives
from .expansions import taylor_coefficients as taylor_coefficients
