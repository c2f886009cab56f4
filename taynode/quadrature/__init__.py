"""Ways to integrate the rate of a regularizer along the path."""

from .augmented import Augmented as Augmented
from .backward import Backward as Backward
from .base import AbstractQuadrature as AbstractQuadrature, Penalized as Penalized
from .rows import PerRow as PerRow
from .sampled import Sampled as Sampled
