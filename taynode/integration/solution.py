"""Taking solutions apart, and putting them together again."""

from typing import Any

import diffrax as dfx
import equinox as eqx

from .._types import Args, Scalar, Y
from .plain import plain


def saved(solution: dfx.Solution) -> tuple[Any, Any]:
    """The times and values that were saved, whose structure is that of `saveat`."""
    return solution.ts, solution.ys


def time_and_state(t: Scalar, y: Y, args: Args) -> tuple[Scalar, Y]:
    """What to save to know where a solve ended."""
    del args
    return t, plain(y)


def with_fields(solution: dfx.Solution, **fields: Any) -> dfx.Solution:
    """A solution with other contents; `Solution` is a frozen module."""
    names = list(fields)
    return eqx.tree_at(
        lambda s: [getattr(s, name) for name in names],
        solution,
        list(fields.values()),
        is_leaf=lambda x: x is None,
    )
