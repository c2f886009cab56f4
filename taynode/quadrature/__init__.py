"""How the charge is integrated along the path."""

from .augmented import Augmented as Augmented, Backward as Backward
from .base import AbstractQuadrature as AbstractQuadrature
from .sampled import Sampled as Sampled
