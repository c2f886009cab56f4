"""Claims on methods at equal evaluations."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import geometric_mean
from typing import NamedTuple, TypeAlias

from .budgets import SHARES
from .selection import chosen_on_other_seeds
from .statistics import in_range, mean, spread
from .study import Claim, judged, Numbers
from .table_rows import column
from .verdicts import number, ratio, reached


GIVEN, OURS = "unregularized", "R_3"
# A run is at a budget if its evaluations are within this share of it. Slopes are those between
# points that are farther apart than that.
NEAR, APART = 0.05, 0.1
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
    - `others`: the methods that no weight steers to a budget. They are shown where they end.
    """

    numbers: Numbers
    steps: int | None
    need: float
    rows: Mapping[str, Sequence[str]]
    others: Collection[str] = ()

    def column(self, row: str, name: str) -> dict[int, float]:
        """A column by seed; empty if there is no such row, or if it was not measured."""
        known = {each["model"] for each in self.numbers["rows"] if each[name]}
        return column(self.numbers, row, self.steps, name) if row in known else {}

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

    @property
    def seeds(self) -> list[int]:
        """The seeds of unregularized models."""
        return list(self.column(GIVEN, "loss"))

    def losses_at(self, method: str, share: float) -> dict[int, float]:
        """The loss of each seed at a share of the evaluations, of seeds that have a run there."""
        if method in self.others:
            return {}
        runs = {
            row: (self.column(row, "NFE"), self.column(row, "loss"))
            for row in (GIVEN, *self.rows[method])
        }
        found = {}
        for seed in self.seeds:
            ends = {
                row: (nfe[seed], loss[seed]) for row, (nfe, loss) in runs.items() if seed in nfe
            }
            # Evaluations are unknown if a sample was not solved.
            given = [ends.pop(GIVEN)] if GIVEN in ends else []
            if (loss := _at(share * self.need, given, list(ends.values()))) is not None:
                found[seed] = loss
        return found


Point: TypeAlias = tuple[float, float]


def _at(count: float, given: Sequence[Point], points: Sequence[Point]) -> float | None:
    """The loss that the run with the nearest evaluations would have with `count` of them.

    What it misses by is made up for by the slope to the next point, in units of steps: fronts are
    nearly straight lines in the inverse of evaluations. `None` if no run is near.
    """
    if not points:
        return None
    nfe, loss = min(points, key=lambda point: abs(point[0] - count))
    if abs(nfe / count - 1) > NEAR:
        return None
    far = [point for point in (*given, *points) if abs(point[0] / nfe - 1) > APART]
    # On the other side of the budget, if there is one.
    between = [point for point in far if (point[0] - count) * (nfe - count) <= 0]
    if not (between or far):
        return None
    other, its_loss = min(between or far, key=lambda point: abs(point[0] - count))
    slope = (its_loss - loss) / (1 / other - 1 / nfe)
    return loss + slope * (1 / count - 1 / nfe)


def compared_claims(found: Compared) -> list[Claim]:
    """Each method with a budget beside R_3, at exactly equal evaluations."""
    claims = []
    for method in found.rows:
        if method == OURS or method in found.others:
            continue
        words, bounds = [], []
        for share in SHARES:
            theirs, ours = (found.losses_at(name, share) for name in (method, OURS))
            both = [seed for seed in found.seeds if seed in theirs and seed in ours]
            paid = [theirs[seed] - ours[seed] for seed in both]
            at = f"at {share:g} of the evaluations"
            some = f" (reached on {len(both)} of {len(found.seeds)} seeds)"
            missing = "" if len(both) == len(found.seeds) else some
            words.append(f"{spread(paid) if paid else '-'} {at}{missing}")
            bounds.append(number(f"loss over that of {OURS} {at}", paid, at_most=0.0))
            bounds.append(reached(f"both {at}", [seed in both for seed in found.seeds]))
        claims.append(
            judged(
                f"{method} costs less loss than {OURS} at equal evaluations",
                "",
                "; ".join(words),
                *bounds,
                rule="less loss at both budgets, which all seeds reach",
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
            for name, column in (("Dopri5", "NFE, dopri5"), ("Tsit5", "NFE, tsit5"))
        }
        # Without a number, nothing was measured.
        every = [x for x in found.column(row, "true error").values() if not math.isnan(x)]
        errors = [x for x in every if math.isfinite(x)]
        told = lambda of: ", ".join(f"{spread(x) if x else '-'} with {n}" for n, x in of.items())
        claims.append(
            judged(
                f"{method}: the solver is not fooled",
                "",
                f"true error {in_range(errors) if errors else '-'} tolerances; over that of "
                f"unregularized models {told(grown)}; evaluations {told(saved)} ({row})",
                ratio("true error with over without", grown["Dopri5"], at_most=FOOLED),
                # The error of a solve that fails is infinite.
                reached("a true error", [x < math.inf for x in every]),
                rule=f"at most {FOOLED:g} times the true error of unregularized models, with the "
                "solver of training, which no seed fails with",
                is_ours=True,
            )
        )
    return claims


def looks_fooled(found: Compared, method: str) -> bool:
    """Whether errors have grown too much in the mean, or a solve fails."""
    row = found.end(method)
    grown, every = found.ratios("true error", row), found.column(row, "true error").values()
    failed = any(math.isinf(x) for x in every)
    return failed or (bool(grown) and geometric_mean(grown) > FOOLED)


LIMITS = {"NFE": 0.25, "loss": 1.05, "seconds": 0.6}


def published_claim(found: Compared) -> Claim:
    """Whether a method has all that no published one has.

    For each seed it is the row that comes closest on the other seeds, since the best of many rows
    is the best by luck, too.
    """
    chosen = chosen_on_other_seeds(found.seeds, lambda seeds: _closest(found, seeds))
    each = {name: [] for name in LIMITS}
    for seed, row in chosen.items():
        for name, values in each.items():
            above, below = (found.column(x, name) for x in (row, GIVEN))
            if seed in above and seed in below:
                values.append(above[seed] / below[seed])
    words = {"NFE": "the evaluations", "loss": "the loss", "seconds": "the training time"}
    listed = ", ".join(f"{spread(x) if x else '-'} of {words[name]}" for name, x in each.items())
    rows = " or ".join(dict.fromkeys(filter(None, chosen.values()))) or "-"
    done = [seed in found.column(row, "NFE") for seed, row in chosen.items()]
    if not all(done):
        listed += (
            f"; {done.count(False)} of {len(done)} seeds without a run that solves all samples"
        )
    return judged(
        "A quarter of the evaluations at 5 % more loss, in 0.6 of the training time",
        "",
        f"closest, by the other seeds: {rows}: {listed}",
        *(ratio(words[name], x, at_most=LIMITS[name]) for name, x in each.items()),
        reached("a run of the row", done),
        rule="at most 0.25, 1.05 and 0.6 times those of unregularized models",
        is_ours=True,
    )


def _closest(found: Compared, seeds: Sequence[int]) -> str:
    """The row that is closest to all limits on some seeds, in the worst of them."""
    rows = [row for rows in found.rows.values() for row in rows]
    # Times of busy machines are unknown. Rows are compared by what is known of all of them.
    timed = all(set(seeds) <= found.column(row, "seconds").keys() for row in (GIVEN, *rows))
    limits = {name: limit for name, limit in LIMITS.items() if timed or name != "seconds"}
    columns = {row: {name: found.column(row, name) for name in limits} for row in (GIVEN, *rows)}
    misses = {
        row: max(
            mean(columns[row][name][seed] / columns[GIVEN][name][seed] for seed in seeds) / limit
            for name, limit in limits.items()
        )
        for row in rows
        if all(set(seeds) <= columns[x][name].keys() for x in (GIVEN, row) for name in limits)
    }
    return min(misses, key=lambda row: misses[row], default="")


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
