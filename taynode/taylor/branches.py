"""Coefficients of a vector field along several curves that share their beginnings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._types import Args, Arrays, RealScalarLike, VectorField, Y
from .expansion import Expansion, Record
from .series import add, cast, Coefficient, instantiate, scale
from .solution import program_of_field


# A linear combination of the results of sweeps: a factor for the position of each of them.
Combination = Mapping[int, float]


class Sweep(NamedTuple):
    """One evaluation of a vector field: its coefficient k along a curve through (t, y).

    Time moves at unit speed on all curves.

    - `curve`: the positions of the sweeps along the same curve of orders 0 to k - 1.
    - `step`: coefficient k of the curve, from the results of sweeps of order k - 1.
    """

    curve: tuple[int, ...]
    step: Combination


def along_branches(
    vector_field: VectorField,
    t: RealScalarLike,
    y: Y,
    args: Args,
    *,
    sweeps: Sequence[Sweep],
    result: Combination,
    where: Callable[[Y], Arrays],
) -> tuple[Y, Arrays]:
    """Return dy/dt of the whole state, and `where` of a combination of the results of sweeps.

    Each sweep evaluates the vector field once, as each order of `solution_derivatives` does. The
    first one is that of order 0.
    """
    program, inputs, treedef = program_of_field(vector_field, t, y, args, where)
    time, *leaves = inputs
    avals = [jax.typeof(leaf) for leaf in leaves]
    results: list[list[Coefficient]] = []
    records: list[Record] = []
    for sweep in sweeps:
        coefficients: list[Coefficient] = [*inputs]
        if sweep.curve:
            speed = jnp.ones_like(time) if len(sweep.curve) == 1 else None
            coefficients = [speed, *_combined(results, sweep.step, len(avals))]
        expansion = Expansion.restore(program, [records[i] for i in sweep.curve])
        rates: list[Any] = expansion.advance(coefficients)
        results.append(
            [
                None if rate is None else cast(jnp.asarray(rate), aval.dtype)
                for rate, aval in zip(rates, avals, strict=True)
            ]
        )
        records.append(expansion.record())
    like_state = lambda values: treedef.unflatten(map(instantiate, values, avals))
    return like_state(results[0]), where(like_state(_combined(results, result, len(avals))))


def _combined(
    results: Sequence[Sequence[Coefficient]], combination: Combination, size: int
) -> list[Coefficient]:
    total: list[Coefficient] = [None] * size
    for position, factor in combination.items():
        total = [add(x, scale(y, factor)) for x, y in zip(total, results[position], strict=True)]
    return total
