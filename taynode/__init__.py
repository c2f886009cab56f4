"""Neural differential equations that are cheap to solve."""

from .taylor import jet as jet
from .taylor import solution_derivatives as solution_derivatives
from .taylor import taylor_coefficients as taylor_coefficients
