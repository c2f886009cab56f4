"""Claims on budgets and prices."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator

from .statistics import mean, mean_interval, percent_fewer, spread
from .study import Claim, judged, Numbers
from .table_rows import column, ratios
from .verdicts import FAILS, HOLDS, number, ratio, UNDECIDED


# A step of a solver of order 5.
STEP = 6
NAMES = {"r2": "R_2", "r3": "R_3"}
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

    def constants(self, name: str) -> list[str]:
        """The rows of the constant weights of a regularizer."""
        return [f"{NAMES[name]}, weight {weight:g}" for weight in self.weights[name]]

    def least(self, name: str) -> float:
        """The least evaluations that a constant weight reaches, as a mean over seeds."""
        found = [mean(self.column(arm, COUNT).values()) for arm in self.constants(name)]
        return min((x for x in found if math.isfinite(x)), default=math.inf)

    def budgets(self, name: str) -> dict[str, float]:
        """The rows with budgets, and their budgets."""
        rows = [row["model"] for row in self.numbers["rows"]]
        start = f"{NAMES[name]}, budget "
        return {row: float(row[len(start) :]) * self.need for row in rows if row.startswith(start)}

    def feasible(self, name: str) -> dict[str, float]:
        """Those of them that are a step above what constant weights reach."""
        least = self.least(name) + STEP
        return {arm: budget for arm, budget in self.budgets(name).items() if budget >= least}


def kept_claim(found: Budgeted) -> Claim:
    """That the evaluations of test samples end near the budget."""
    feasible = _misses(found, found.feasible)
    near, far = _within(feasible)
    every = _misses(found, found.budgets)
    listed = {
        arm: spread(list(found.column(arm, COUNT).values()))
        for name in NAMES
        for arm in found.budgets(name)
        if found.column(arm, COUNT)
    }
    words = "; ".join(f"{arm}: {nfe}" for arm, nfe in listed.items())
    holds = near >= 0.9 * len(feasible) and far == len(feasible)
    return Claim(
        "Evaluations per test sample end within 5 % of a feasible budget",
        "suggested, not tried",
        f"{near} of {len(feasible)} within 5 %, {far} within 10 %; with those below what constants "
        f"were seen to reach, {' and '.join(map(str, _within(every)))} of {len(every)} ({words}; "
        f"need {found.need:g})",
        (HOLDS if holds else FAILS) if feasible else UNDECIDED,
        "9 of 10 within 5 %, all within 10 %; feasible is one step above what constants reach",
        is_ours=True,
    )


def _misses(found: Budgeted, budgets: Callable[[str], dict[str, float]]) -> list[float]:
    """By what share the evaluations of each run miss its budget."""
    return [
        abs(nfe / budget - 1)
        for name in NAMES
        for arm, budget in budgets(name).items()
        for nfe in found.column(arm, COUNT).values()
    ]


def _within(misses: Sequence[float]) -> tuple[int, int]:
    """How many are near, and how many are not far."""
    near, far = (sum(miss <= bound for miss in misses) for bound in (NEAR, FAR))
    return near, far


def as_good_claim(found: Budgeted, name: str) -> Claim:
    """That a budget costs no more loss than the best constant weight at as many evaluations."""
    paid = _by_seed(found, [name], "loss", lambda own, on_front: own - on_front)
    plain = mean(map(abs, found.column("unregularized", "loss").values()))
    interval = mean_interval(paid)
    words = f"{spread(paid) if paid else '-'} more, of {plain:.3g}"
    if interval is not None:
        half, is_zero = (interval[1] - interval[0]) / 2, interval[0] <= 0
        words += f"; interval ± {half:.2g}, {'with' if is_zero else 'without'} zero or better"
    return judged(
        f"{NAMES[name]}: a budget costs no more loss than constant weights at as many evaluations",
        "not tried",
        words,
        number("loss over that of constant weights", paid, at_most=MARGIN * plain),
        rule=f"at most {MARGIN:.0%} of the unregularized loss, as a mean over a seed's budgets",
        is_ours=True,
    )


def training_claim(found: Budgeted) -> Claim:
    """That the evaluations of all training steps are not more than those of constant weights."""
    logs = _by_seed(found, NAMES, "training NFE", lambda own, on_front: math.log(own / on_front))
    shares = [math.exp(x) for x in logs]
    return judged(
        "Training to a budget takes no more evaluations than with constant weights",
        "not tried",
        f"{spread(shares) if shares else '-'} times",
        ratio("evaluations in training", shares, at_most=1.05),
        rule="at most 1.05 times as many as constant weights that end at as many, as a mean over "
        "the budgets of a seed",
        is_ours=True,
    )


def _by_seed(
    found: Budgeted,
    names: Iterable[str],
    quantity: str,
    compare: Callable[[float, float], float],
) -> list[float]:
    """A comparison of runs with budgets and the front of constant weights, a mean for each seed.

    Two budgets of a seed are no independent measurements.
    """
    by_seed: dict[int, list[float]] = {}
    for name in names:
        for arm in found.feasible(name):
            for seed, own in found.column(arm, quantity).items():
                on_front = _on_front(found, name, quantity, arm, seed)
                if on_front is not None:
                    by_seed.setdefault(seed, []).append(compare(own, on_front))
    return [mean(each) for each in by_seed.values()]


def _on_front(found: Budgeted, name: str, quantity: str, arm: str, seed: int) -> float | None:
    """A column of constant weights at the evaluations of a run, interpolated; `None` if unknown."""
    front = sorted(
        (found.column(each, COUNT)[seed], found.column(each, quantity)[seed])
        for each in ("unregularized", *found.constants(name))
        if seed in found.column(each, COUNT) and seed in found.column(each, quantity)
    )
    at = found.column(arm, COUNT).get(seed)
    if at is None or len(front) < 2 or not front[0][0] <= at <= front[-1][0]:
        return None
    counts, values = (np.array(x) for x in zip(*front, strict=True))
    if len(np.unique(counts)) < len(counts):
        return float(np.interp(at, counts, values))
    # Chords of a front that bends would lie above it. This curve makes no waves of its own.
    return float(PchipInterpolator(np.log(counts), values)(np.log(at)))


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
