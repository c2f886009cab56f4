"""Taylor-mode differentiation of JAX programs, order by order."""

from .branches import along_branches as along_branches, Combination as Combination, Sweep as Sweep
from .curves import jet as jet
from .custom import register_rule as register_rule
from .errors import NoDerivativeError as NoDerivativeError
from .solution import (
    derivative_of_part as derivative_of_part,
    solution_derivatives as solution_derivatives,
    taylor_coefficients as taylor_coefficients,
)
