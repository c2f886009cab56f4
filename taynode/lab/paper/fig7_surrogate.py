"""Figure 7: R_K as a surrogate of the evaluations that a solver of order K needs."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from ...ranks import rank_correlation
from ..sweep.plan import Job
from ..sweep.results import Result
from . import mnist_sweep
from .arms import Arm, arms_of
from .chart import Chart, Line, Panel
from .fig6_orders import evaluations_of, title_of
from .mnist_sweep import SOLVERS
from .selection import choices_in_words, chosen_on_other_seeds
from .statistics import mean, spread
from .study import AbstractStudy, Claim, judged, Numbers
from .verdicts import number, ratio


# A larger increase of the training loss is too much.
MOST = 0.5
# Columns by name, with an entry for each run; numbers, but seeds are integers.
Points: TypeAlias = dict[str, list[Any]]


class Surrogate(AbstractStudy):
    """MNIST: the penalty of each run against the evaluations of a solver."""

    name = "fig7-surrogate"
    title = "R_K and the number of evaluations"

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """The whole sweep."""
        return mnist_sweep.jobs(scale, seeds)

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """For each solver and order, the penalties and evaluations of all runs with that order.

        The unregularized runs are among them, if the penalty of that order is known.
        """
        del scale
        arms = arms_of(results)
        plain = arms[0].values("train_loss")
        made = evaluations_of(arms)
        return {
            str(solver): {
                "evaluation": made[f"order {solver}"],
                "orders": {
                    str(order): _points(
                        [arm for arm in arms if arm.order in (0, order)],
                        order,
                        made[f"order {solver}"],
                        plain,
                    )
                    for order in sorted({arm.order for arm in arms} - {0})
                },
            }
            for solver in SOLVERS
            if f"order {solver}" in made
        }

    def chart(self, numbers: Numbers) -> Chart:
        """A panel for each solver, a color for each order that is regularized."""
        return Chart(
            [
                Panel(
                    [
                        Line(points["penalty"], points["nfe"], f"R_{order}", i + 1, joined=False)
                        for i, (order, points) in enumerate(panel["orders"].items())
                    ],
                    title_of(f"order {solver}", panel["evaluation"]),
                    "R_K of the run",
                    "NFE per test sample",
                    x_log=True,
                    y_log=True,
                )
                for solver, panel in numbers.items()
            ],
            height=3.2,
        )

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Evaluations rise with R_K, and are fewest for the order of the solver."""
        return [claim for solver in numbers for claim in _claims(solver, numbers[solver])]


def _points(arms: Sequence[Arm], order: int, evaluation: str, plain: dict[int, float]) -> Points:
    """A point for each run."""
    names = "penalty", "nfe", "weight", "extra_loss", "seed"
    points: Points = {name: [] for name in names}
    for arm in arms:
        for seed, result in arm.results.items():
            # An unregularized run has the same number under another name, for some orders.
            penalty = result["row"].get("penalty" if arm.order else f"r{order}")
            if penalty is None:
                continue
            loss = result["row"]["train_loss"]
            points["penalty"].append(penalty)
            points["nfe"].append(result["evaluations"][evaluation]["test_nfe"])
            points["weight"].append(arm.weight)
            points["extra_loss"].append(loss / plain[seed] - 1 if seed in plain else math.nan)
            points["seed"].append(seed)
    return points


def _claims(solver: str, panel: Numbers) -> list[Claim]:
    orders = panel["orders"]
    rho = {k: _correlations(x) for k, x in orders.items()}
    least = {k: fewest for k, x in orders.items() if (fewest := _least(x)).nfe}
    own = least.get(solver, Least({}, {}))
    # The evaluations with other orders over those with the order of the solver.
    others = {
        k: [x.nfe[seed] / own.nfe[seed] for seed in own.nfe if seed in x.nfe]
        for k, x in least.items()
        if k != solver
    }
    resolution = mnist_sweep.half_a_step(panel["evaluation"], min(own.nfe.values(), default=1.0))
    # The paper has no solver of order 4.
    is_ours = solver == "4"
    at_floor = [
        f"{_at_floor(x, panel['evaluation'])} of {len(set(x['weight']))} for R_{k}"
        for k, x in orders.items()
    ]
    on_own = rho.get(solver, [])
    return [
        judged(
            f"Evaluations of a solver of order {solver} rise with R_{solver}",
            "" if is_ours else "varies monotonically",
            f"rank correlation {spread(on_own)}" if on_own else "not regularized at this scale",
            number("rank correlation", on_own, at_least=0.9),
            rule="rank correlation over weights of at least 0.9",
            is_ours=is_ours,
        ),
        judged(
            f"Evaluations of a solver of order {solver} rise with R_K, for all K",
            "" if is_ours else "varies monotonically",
            f"rank correlation {', '.join(f'{spread(x)} for R_{k}' for k, x in rho.items())}; "
            f"weights within a step of the fewest evaluations: {', '.join(at_floor)}",
            *(number(f"R_{k}", x, at_least=0.9) for k, x in rho.items()),
            rule="at least 0.9 for each order",
            is_ours=is_ours,
        ),
        judged(
            f"The fewest evaluations of a solver of order {solver} come with R_{solver}",
            "" if is_ours else "for each order of solver",
            ", ".join(
                f"R_{k} {spread(list(x.nfe.values()))} ({choices_in_words(x.weights.values())})"
                for k, x in least.items()
            )
            + "; with the weight that has the fewest on the other seeds, for at most "
            f"{MOST:.0%} more training loss",
            *(
                ratio(f"R_{k} over R_{solver}", x, at_least=1.0, resolution=resolution)
                for k, x in others.items()
            ),
            rule="fewer than with all others; intervals are longer by half a step",
            is_ours=is_ours,
        ),
    ]


def _correlations(points: Points) -> list[float]:
    """The rank correlation of penalty and evaluations over weights, for each seed."""
    by_seed: dict[int, list[tuple[float, float]]] = {}
    both = zip(points["penalty"], points["nfe"], strict=True)
    for seed, pair in zip(points["seed"], both, strict=True):
        by_seed.setdefault(seed, []).append(pair)
    return [rank_correlation(*map(list, zip(*pairs, strict=True))) for pairs in by_seed.values()]


def _by_weight(points: Points, name: str) -> dict[float, dict[int, float]]:
    out: dict[float, dict[int, float]] = {}
    for weight, seed, value in zip(points["weight"], points["seed"], points[name], strict=True):
        out.setdefault(weight, {})[seed] = value
    return out


class Least(NamedTuple):
    """The weight with the fewest evaluations on the other seeds, by seed.

    - `weights`: the weight that was chosen.
    - `nfe`: its evaluations on the seed itself.
    """

    weights: dict[int, float]
    nfe: dict[int, float]


def _least(points: Points) -> Least:
    """A choice among the weights whose mean loss on the other seeds is acceptable."""
    nfe, extra = (_by_weight(points, name) for name in ("nfe", "extra_loss"))

    def best(seeds: list[int]) -> float | None:
        over_seeds = lambda values: mean(values[seed] for seed in seeds if seed in values)
        good = [w for w, losses in extra.items() if w and over_seeds(losses) <= MOST]
        return min(good, key=lambda w: over_seeds(nfe[w]), default=None)

    chosen = chosen_on_other_seeds(sorted(set(points["seed"])), best)
    known = {seed: w for seed, w in chosen.items() if w is not None and seed in nfe[w]}
    return Least(known, {seed: nfe[w][seed] for seed, w in known.items()})


def _at_floor(points: Points, evaluation: str) -> int:
    """The number of weights within a step of the fewest evaluations, which hardly differ."""
    nfe = [mean(x.values()) for x in _by_weight(points, "nfe").values()]
    step = mnist_sweep.STEP[evaluation.partition(" ")[0]]
    return sum(x < min(nfe) + step for x in nfe)
