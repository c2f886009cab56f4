"""Claims on budgets and prices."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator

from .statistics import mean, mean_interval, percent_fewer, spread
from .study import Claim, judged, Numbers
from .table_rows import column, find_row, ratios
from .verdicts import FAILS, HOLDS, number, ratio, UNDECIDED


# A step of a solver of order 5.
STEP = 6
# The regularizers that budgets steer. Of the last one, prices take the place of constant weights.
NAMES = {"r2": "R_2", "r3": "R_3", "nfe": "expected NFE"}
NEAR, FAR = 0.05, 0.1
# The column of evaluations.
COUNT = "NFE"
# So much more loss, as a share of the unregularized one, counts as no more.
MARGIN = 0.02


class Budgeted(NamedTuple):
    """The numbers of a study on budgets.

    - `steps`: the grid of its rows.
    - `need`: the evaluations that shares refer to.
    - `weights`: the constant weights of each regularizer.
    """

    numbers: Numbers
    steps: int | None
    need: float
    weights: Mapping[str, Sequence[float]]

    def column(self, arm: str, name: str) -> dict[int, float]:
        """A column by seed; empty if there is no such row."""
        known = {row["model"] for row in self.numbers["rows"]}
        return column(self.numbers, arm, self.steps, name) if arm in known else {}

    def seeds(self, arm: str) -> list[int]:
        """The seeds of a row, those of failed runs included."""
        row = find_row(self.numbers, arm, self.steps)
        return [*row["seeds"], *row["failed_seeds"]]

    def constants(self, name: str) -> list[str]:
        """The rows of the constant weights of a regularizer."""
        return [f"{NAMES[name]}, weight {weight:g}" for weight in self.weights[name]]

    def least(self, name: str) -> float:
        """The least evaluations that a constant weight reaches, as a mean over seeds."""
        found = [mean(self.column(arm, COUNT).values()) for arm in self.constants(name)]
        return min((x for x in found if math.isfinite(x)), default=math.inf)

    def budgets(self, *names: str) -> dict[str, float]:
        """The rows with budgets of some regularizers, and their budgets."""
        rows = [row["model"] for row in self.numbers["rows"]]
        starts = [f"{NAMES[name]}, budget " for name in names]
        return {
            row: float(row[len(start) :]) * self.need
            for start in starts
            for row in rows
            if row.startswith(start) and self.seeds(row)
        }

    def feasible(self) -> dict[str, float]:
        """Those of R_2 and R_3 that are a step above what constant weights reach."""
        return {
            arm: budget
            for name in self.weights
            for arm, budget in self.budgets(name).items()
            if budget >= self.least(name) + STEP
        }


def kept_claim(found: Budgeted) -> Claim:
    """That the evaluations of test samples end near the budget."""
    feasible, every = (_misses(found, x) for x in (found.feasible(), found.budgets(*NAMES)))
    near, far = _within(feasible)
    words = "; ".join(
        f"{arm}: {spread(values) if (values := list(found.column(arm, COUNT).values())) else '-'}"
        for arm in found.budgets(*NAMES)
    )
    failed = sum(math.isinf(miss) for miss in every)
    lost = f", {failed} without a number" if failed else ""
    holds = near >= 0.9 * len(feasible) and far == len(feasible)
    return Claim(
        "With R_2 and R_3, evaluations per test sample end within 5 % of a feasible budget",
        "suggested, not tried",
        f"{near} of {len(feasible)} within 5 %, {far} within 10 %; of all budgets, with those that "
        f"constant weights do not reach and those of the expected NFE, "
        f"{' and '.join(map(str, _within(every)))} of {len(every)}{lost} ({words}; need "
        f"{found.need:g})",
        (HOLDS if holds else FAILS) if feasible else UNDECIDED,
        "9 of 10 within 5 %, all within 10 %; feasible is one step above what constants reach",
        is_ours=True,
    )


def _misses(found: Budgeted, budgets: Mapping[str, float]) -> list[float]:
    """By what share the evaluations of each run miss its budget."""
    counts = {arm: found.column(arm, COUNT) for arm in budgets}
    return [
        # A run that failed, or has unsolved samples, has not kept its budget.
        abs(counts[arm].get(seed, math.inf) / budget - 1)
        for arm, budget in budgets.items()
        for seed in found.seeds(arm)
    ]


def _within(misses: Sequence[float]) -> tuple[int, int]:
    """How many are near, and how many are not far."""
    near, far = (sum(miss <= bound for miss in misses) for bound in (NEAR, FAR))
    return near, far


def as_good_claim(found: Budgeted, name: str) -> Claim:
    """That a budget costs no more loss than the best constant weight at as many evaluations."""
    paid, left_out = _by_seed(found, [name], "loss", lambda own, on_front: own - on_front)
    plain = mean(map(abs, found.column("unregularized", "loss").values()))
    interval = mean_interval(paid)
    words = f"{spread(paid) if paid else '-'} more, of {plain:.3g}"
    if interval is not None:
        half, is_zero = (interval[1] - interval[0]) / 2, interval[0] <= 0
        where = "includes zero or lies below" if is_zero else "lies above zero"
        words += f"; the interval, ± {half:.2g}, {where}"
    for arm in left_out:
        losses = list(found.column(arm, "loss").values())
        words += f"; not compared: {arm}, loss {spread(losses) if losses else '-'}"
    return judged(
        f"{NAMES[name]}: a budget costs no more loss than constant weights at as many evaluations",
        "not tried",
        words,
        number("loss over that of constant weights", paid, at_most=MARGIN * plain),
        rule=f"at most {MARGIN:.0%} of the unregularized loss, as a mean over those budgets of a "
        "seed that constant weights reach",
        is_ours=True,
    )


def training_claim(found: Budgeted) -> Claim:
    """That the evaluations of all training steps are not more than those of constant weights."""
    compare = lambda own, on_front: math.log(own / on_front)
    logs, _ = _by_seed(found, found.weights, "training NFE", compare)
    shares = [math.exp(x) for x in logs]
    return judged(
        "Training to a budget takes no more evaluations than with constant weights",
        "not tried",
        f"{spread(shares) if shares else '-'} times",
        ratio("evaluations in training", shares, at_most=1.05),
        rule="at most 1.05 times as many as constant weights that end at as many, as a mean over "
        "those budgets of a seed that constant weights reach",
        is_ours=True,
    )


def _by_seed(
    found: Budgeted,
    names: Iterable[str],
    quantity: str,
    compare: Callable[[float, float], float],
) -> tuple[list[float], list[str]]:
    """A comparison of runs with budgets and the front of constant weights, a mean for each seed.

    Two budgets of a seed are no independent measurements. Also the rows that are not compared on
    any seed, since constant weights do not reach them.
    """
    by_seed: dict[int, list[float]] = {}
    left_out, feasible = [], found.feasible()
    for name in names:
        for arm in found.budgets(name):
            compared = False
            for seed, own in found.column(arm, quantity).items() if arm in feasible else ():
                on_front = _on_front(found, name, quantity, arm, seed)
                if on_front is not None:
                    by_seed.setdefault(seed, []).append(compare(own, on_front))
                    compared = True
            if not compared:
                left_out.append(arm)
    return [mean(each) for each in by_seed.values()], left_out


def _on_front(found: Budgeted, name: str, quantity: str, arm: str, seed: int) -> float | None:
    """A column of constant weights at the evaluations of a run, interpolated; `None` if unknown."""
    by_count: dict[float, list[float]] = {}
    for each in ("unregularized", *found.constants(name)):
        count, value = (found.column(each, x).get(seed) for x in (COUNT, quantity))
        if count is not None and value is not None:
            by_count.setdefault(count, []).append(value)
    at, counts = found.column(arm, COUNT).get(seed), sorted(by_count)
    if at is None or len(counts) < 2 or not counts[0] <= at <= counts[-1]:
        return None
    # Chords of a front that bends would lie above it. This curve makes no waves of its own.
    curve = PchipInterpolator(np.log(counts), [mean(by_count[count]) for count in counts])
    return float(curve(np.log(at)))


def price_claims(found: Budgeted, prices: Sequence[float]) -> list[Claim]:
    """What prices buy: evaluations saved, and loss paid."""
    claims = []
    for price in prices:
        arm = f"price {price:g}"
        saved = ratios(found.numbers, COUNT, arm, steps=found.steps)
        plain, priced = (found.column(x, "loss") for x in ("unregularized", arm))
        paid = [priced[seed] - plain[seed] for seed in priced.keys() & plain.keys()]
        words = f"{spread(percent_fewer(saved))} % fewer for {spread(paid)} of loss"
        claims.append(
            judged(
                f"A price of {price:g} per evaluation saves evaluations worth more than the loss",
                "not tried",
                words if saved and paid else "-",
                ratio("evaluations with over without", saved, at_most=1.0),
                number(
                    "loss paid less value saved",
                    [
                        priced[seed] - plain[seed] - price * _saved(found, arm, seed)
                        for seed in priced.keys() & plain.keys()
                    ],
                    at_most=0.0,
                ),
                rule="fewer evaluations, and less loss than they are worth",
                is_ours=True,
            )
        )
    return claims


def _saved(found: Budgeted, arm: str, seed: int) -> float:
    before, after = (found.column(x, COUNT) for x in ("unregularized", arm))
    return before.get(seed, math.nan) - after.get(seed, math.nan)
