"""Penalties on the path of a solution."""

from .at_point import penalty_at as penalty_at
from .base import AbstractRegularizer as AbstractRegularizer
from .curvature import Curvature as Curvature
from .diffusion import DiffusionNorm as DiffusionNorm
from .directional import DirectionalDerivative as DirectionalDerivative
from .error_estimate import ErrorEstimate as ErrorEstimate
from .expected_nfe import ExpectedNFE as ExpectedNFE
from .jacobian import JacobianFrobenius as JacobianFrobenius
from .kinetic import KineticEnergy as KineticEnergy
from .path import PolynomialDistance as PolynomialDistance
from .rnode import RNODE as RNODE
from .stiffness import Stiffness as Stiffness
from .total_derivative import TotalDerivative as TotalDerivative
