"""Importing this package registers every rule. Each file holds one family of primitives."""

from . import (
    arithmetic as arithmetic,
    calls as calls,
    checkpoint as checkpoint,
    control_flow as control_flow,
    derived as derived,
    elementwise as elementwise,
    linear as linear,
    linear_algebra as linear_algebra,
    piecewise as piecewise,
    special as special,
)
