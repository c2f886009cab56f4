"""Claims on methods at equal evaluations."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .budgets import SHARES
from .statistics import in_range, mean, spread
from .study import Claim, judged, Numbers
from .table_rows import column
from .verdicts import number, ratio


GIVEN, OURS = "unregularized", "R_3"
# How far beyond its last point a front is continued, as a share of the evaluations.
BEYOND = 0.1
# Errors may grow by this factor before a solver counts as fooled.
FOOLED = 2.0


def end_of(rows: Iterable[str]) -> str:
    """The row that stands for a method: that of the second budget, or of the last setting."""
    return list(rows)[: len(SHARES)][-1]


class Compared(NamedTuple):
    """The numbers of a study of rivals.

    - `steps`: the grid of its rows.
    - `need`: the evaluations that shares refer to.
    - `rows`: the rows of each method.
    """

    numbers: Numbers
    steps: int | None
    need: float
    rows: Mapping[str, Sequence[str]]

    def column(self, row: str, name: str) -> dict[int, float]:
        """A column by seed; empty if there is no such row, or if it was not measured."""
        known = {each["model"] for each in self.numbers["rows"] if each[name]}
        return column(self.numbers, row, self.steps, name) if row in known else {}

    def front(self, method: str) -> list[str]:
        """The rows of a method, and of unregularized models."""
        return [GIVEN, *self.rows[method]]

    def end(self, method: str) -> str:
        """The row that stands for a method: as `end_of`, of the rows that have runs."""
        rows = self.rows[method]
        return end_of([row for row in rows if self.column(row, "NFE")] or rows)

    def ratios(self, name: str, row: str) -> list[float]:
        """A column of a row over that of unregularized models, seed by seed, where it is known."""
        above, below = (self.column(x, name) for x in (row, GIVEN))
        both = [(above[seed], below[seed]) for seed in above if seed in below]
        return [a / b for a, b in both if math.isfinite(a) and math.isfinite(b) and b > 0]

    def paid(self, method: str, share: float) -> list[float]:
        """The loss of each seed over that without regularizer, at a share of the evaluations."""
        given = self.column(GIVEN, "loss")
        return [loss - given[seed] for seed, loss in self.losses_at(method, share).items()]

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
    """The height of a broken line at x; `None` if x is too far out.

    The line is continued at its left end by a tenth, and never by more than its first piece is
    long: noise would tilt it.
    """
    if len(points) < 2:
        return None
    xs, ys = (np.array(values) for values in zip(*points, strict=True))
    first = xs[1] - xs[0]
    if not xs[0] - min(BEYOND * xs[0], first) <= x <= xs[-1]:
        return None
    if x >= xs[0]:
        return float(np.interp(x, xs, ys))
    return float(ys[0] + (ys[1] - ys[0]) / first * (x - xs[0]))


def compared_claims(found: Compared) -> list[Claim]:
    """Each method beside R_3, at exactly equal evaluations."""
    claims = []
    for method in found.rows:
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


def fooled_claims(found: Compared) -> list[Claim]:
    """Whether the errors of the solver that a model was trained against stay what was asked for.

    A penalty on the numbers that control steps might make them small where errors are not.
    """
    claims = []
    for method in found.rows:
        row = found.end(method)
        grown = {
            name: found.ratios(column, row)
            for name, column in (("Dopri5", "true error"), ("Tsit5", "true error, tsit5"))
        }
        saved = {
            name: found.ratios(column, row)
            for name, column in (("Dopri5", "NFE"), ("Tsit5", "NFE, tsit5"))
        }
        errors = [x for x in found.column(row, "true error").values() if math.isfinite(x)]
        told = lambda of: ", ".join(f"{spread(x) if x else '-'} with {n}" for n, x in of.items())
        claims.append(
            judged(
                f"{method}: the solver is not fooled",
                "",
                f"true error {in_range(errors) if errors else '-'} tolerances; over that of "
                f"unregularized models {told(grown)}; evaluations {told(saved)} ({row})",
                ratio("true error with over without", grown["Dopri5"], at_most=FOOLED),
                rule=f"at most {FOOLED:g} times the true error of unregularized models, with the "
                "solver of training",
                is_ours=True,
            )
        )
    return claims


def published_claim(found: Compared) -> Claim:
    """Whether a method has all that no published one has, by the one that comes closest."""
    limits = {"NFE": 0.25, "loss": 1.05, "seconds": 0.6}
    # How far a row is from the limits, in the worst of the three.
    misses = {}
    for rows in found.rows.values():
        for row in rows:
            each = {name: found.ratios(name, row) for name in limits}
            if all(each.values()):
                misses[row] = max(mean(x) / limits[name] for name, x in each.items())
    closest = min(misses, key=lambda row: misses[row], default="")
    each = {name: found.ratios(name, closest) if closest else [] for name in limits}
    words = {"NFE": "the evaluations", "loss": "the loss", "seconds": "the training time"}
    listed = ", ".join(f"{spread(x) if x else '-'} of {words[name]}" for name, x in each.items())
    return judged(
        "A quarter of the evaluations at 5 % more loss, in 0.6 of the training time",
        "",
        f"closest, by these runs: {closest or '-'}: {listed}",
        *(ratio(words[name], x, at_most=limits[name]) for name, x in each.items()),
        rule="at most 0.25, 1.05 and 0.6 times those of unregularized models",
        is_ours=True,
    )


def solving_claim(found: Compared) -> Claim:
    """What is left of the gain if each model has its cheapest solver and tolerance."""
    row = found.end(OURS)
    left = found.ratios("least NFE", row)
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
