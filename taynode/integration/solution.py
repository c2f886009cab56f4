"""Functions of `diffrax.Solution` and `diffrax.SaveAt`."""

import diffrax as dfx
import equinox as eqx
from jaxtyping import PyTree

from .._types import Args, Arrays, RealScalarLike
from .plain import plain


def saved(solution: dfx.Solution) -> tuple[PyTree, PyTree]:
    """The saved times and values, with the structure of `saveat`."""
    return solution.ts, solution.ys


def time_and_state(t: RealScalarLike, y: Arrays, args: Args) -> tuple[RealScalarLike, Arrays]:
    """A `fn` of `diffrax.SubSaveAt` that saves the time and the plain state."""
    del args
    return t, plain(y)


def also_saving(saveat: dfx.SaveAt, sub: dfx.SubSaveAt) -> dfx.SaveAt:
    """Add an output to that of the user; `split` separates the two again."""
    subs = saveat.subs, sub
    return eqx.tree_at(lambda s: s.subs, saveat, subs, is_leaf=lambda x: x is None)


def split(solution: dfx.Solution) -> tuple[dfx.Solution, PyTree, PyTree]:
    """The solution with the output of the user, and the times and values of the added output."""
    (ts, times), (ys, values) = saved(solution)
    return with_fields(solution, ts=ts, ys=ys), times, values


def with_fields(solution: dfx.Solution, **fields: PyTree) -> dfx.Solution:
    """Copy a solution with other values of some fields."""
    names = list(fields)
    return eqx.tree_at(
        lambda s: [getattr(s, name) for name in names],
        solution,
        list(fields.values()),
        is_leaf=lambda x: x is None,
    )
