"""What is charged at a point of the path."""

from .base import AbstractRegularizer as AbstractRegularizer
from .directional import DirectionalDerivative as DirectionalDerivative
from .jacobian import JacobianFrobenius as JacobianFrobenius
from .kinetic import KineticEnergy as KineticEnergy
from .rnode import RNODE as RNODE
from .total_derivative import TotalDerivative as TotalDerivative
