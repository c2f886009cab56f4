"""Ways to integrate the rate of a regularizer along the path."""

from .accepted_steps import AcceptedSteps as AcceptedSteps
from .augmented import Augmented as Augmented
from .backward import Backward as Backward
from .base import AbstractQuadrature as AbstractQuadrature, Penalized as Penalized
from .path_points import PathPoints as PathPoints
from .rows import PerRow as PerRow
from .sampled import Sampled as Sampled
