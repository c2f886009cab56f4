"""Claims on methods at equal evaluations."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .budgets import SHARES
from .statistics import in_range, spread
from .study import Claim, judged, Numbers
from .table_rows import column
from .verdicts import number, ratio


GIVEN, OURS = "unregularized", "R_3"
# How far beyond its last point a front is continued, as a share of the evaluations.
BEYOND = 0.1


class Compared(NamedTuple):
    """The numbers of a study of rivals.

    - `steps`: the grid of its rows.
    - `need`: the evaluations that shares refer to.
    """

    numbers: Numbers
    steps: int | None
    need: float

    def column(self, row: str, name: str) -> dict[int, float]:
        """A column by seed; empty if there is no such row, or if it was not measured."""
        known = {each["model"] for each in self.numbers["rows"] if each[name]}
        return column(self.numbers, row, self.steps, name) if row in known else {}

    def front(self, method: str) -> list[str]:
        """The rows of a method with its budgets, and of unregularized models."""
        return [GIVEN, *(f"{method}, budget {share:g}" for share in SHARES)]

    def losses_at(self, method: str, share: float) -> dict[int, float]:
        """The loss of each seed at a share of the evaluations, interpolated on its front."""
        found = {}
        for seed in self.column(GIVEN, "loss"):
            points = sorted(
                (nfe[seed], self.column(row, "loss")[seed])
                for row in self.front(method)
                if seed in (nfe := self.column(row, "NFE"))
            )
            if (loss := _at(share * self.need, points)) is not None:
                found[seed] = loss
        return found


def _at(x: float, points: Sequence[tuple[float, float]]) -> float | None:
    """The height of a broken line, continued a little at its left end; `None` if too far out."""
    xs, ys = (np.array(values) for values in zip(*points, strict=True))
    if len(points) < 2 or not (1 - BEYOND) * xs[0] <= x <= xs[-1]:
        return None
    if x >= xs[0]:
        return float(np.interp(x, xs, ys))
    slope = (ys[1] - ys[0]) / max(xs[1] - xs[0], 1e-9)
    return float(ys[0] + slope * (x - xs[0]))


def compared_claims(found: Compared, methods: Sequence[str]) -> list[Claim]:
    """Each method beside R_3, at exactly equal evaluations."""
    claims = []
    for method in methods:
        if method == OURS:
            continue
        words, bounds = [], []
        for share in SHARES:
            theirs, ours = (found.losses_at(name, share) for name in (method, OURS))
            paid = [theirs[seed] - ours[seed] for seed in theirs if seed in ours]
            at = f"at {share:g} of the evaluations"
            words.append(f"{spread(paid) if paid else 'not reached'} {at}")
            bounds.append(number(f"loss over that of {OURS} {at}", paid, at_most=0.0))
        claims.append(
            judged(
                f"{method} costs less loss than {OURS} at equal evaluations",
                "",
                "; ".join(words),
                *bounds,
                rule="less loss at both budgets",
                is_ours=True,
            )
        )
    return claims


def solving_claim(found: Compared) -> Claim:
    """What is left of the gain if each model has its cheapest solver and tolerance."""
    row = f"{OURS}, budget {SHARES[-1]:g}"
    least, given = (found.column(name, "least NFE") for name in (row, GIVEN))
    both = [(least[seed], given[seed]) for seed in least if seed in given]
    left = [a / b for a, b in both if a and b]
    errors = [x for x in found.column(row, "true error").values() if math.isfinite(x)]
    return judged(
        "Models with a budget stay cheaper if each model has its cheapest solver",
        "",
        f"{spread(left) if left else '-'} of the evaluations at an equal true error; errors of "
        f"Dopri5 {in_range(errors) if errors else '-'} tolerances",
        ratio("evaluations with over without", left, at_most=1.0),
        rule="fewer evaluations",
        is_ours=True,
    )
