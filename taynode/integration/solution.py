"""Taking solutions apart, and putting them together again."""

from typing import Any

import diffrax as dfx
import equinox as eqx

from .._types import Args, Arrays, RealScalarLike
from .plain import plain


def saved(solution: dfx.Solution) -> tuple[Any, Any]:
    """The times and values that were saved, whose structure is that of `saveat`."""
    return solution.ts, solution.ys


def time_and_state(t: RealScalarLike, y: Arrays, args: Args) -> tuple[RealScalarLike, Arrays]:
    """What to save to know where a solve ended."""
    del args
    return t, plain(y)


def also_saving(saveat: dfx.SaveAt, sub: dfx.SubSaveAt) -> dfx.SaveAt:
    """Save something besides what the user saves; `split` takes the two apart again."""
    subs = saveat.subs, sub
    return eqx.tree_at(lambda s: s.subs, saveat, subs, is_leaf=lambda x: x is None)


def split(solution: dfx.Solution) -> tuple[dfx.Solution, Any, Any]:
    """The solution as the user asked for it, and the times and values that were saved besides."""
    (ts, times), (ys, values) = saved(solution)
    return with_fields(solution, ts=ts, ys=ys), times, values


def with_fields(solution: dfx.Solution, **fields: Any) -> dfx.Solution:
    """A solution with other contents; `Solution` is a frozen module."""
    names = list(fields)
    return eqx.tree_at(
        lambda s: [getattr(s, name) for name in names],
        solution,
        list(fields.values()),
        is_leaf=lambda x: x is None,
    )
