"""Importing this package registers every rule. One file a family of primitives."""

from . import arithmetic as arithmetic
from . import calls as calls
from . import control_flow as control_flow
from . import derived as derived
from . import elementwise as elementwise
from . import linear as linear
from . import linear_algebra as linear_algebra
from . import piecewise as piecewise
from . import special as special
