"""Special functions whose derivative is elementary. The others follow from their JVP rules."""

import math

from jax import lax
from jax.extend.core import primitives as p

from ..registry import RULES
from .derived import from_derivative


_ERF = 2 / math.sqrt(math.pi)

RULES[p.erf_p] = from_derivative(lambda x, y: _ERF * lax.exp(-(x * x)))
RULES[p.erfc_p] = from_derivative(lambda x, y: -_ERF * lax.exp(-(x * x)))
RULES[p.erf_inv_p] = from_derivative(lambda x, y: lax.exp(y * y) / _ERF)
