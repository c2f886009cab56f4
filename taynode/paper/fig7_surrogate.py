"""Figure 7: whether R_K tells how many evaluations a solver of order K needs."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import Job
from . import mnist_sweep
from .arms import arms_of
from .chart import Chart, Line, Panel
from .fig6_orders import PANELS
from .mnist_sweep import SOLVERS
from .statistics import mean, rank_correlation, spread
from .study import AbstractStudy, all_of, Claim, seeds_agree, verdict


# More training loss than that is too much; fewer evaluations by less than that are as many.
MOST, TIE = 0.5, 1.02


class Surrogate(AbstractStudy):
    """MNIST: the penalty of each run against the evaluations of a solver."""

    name: ClassVar[str] = "fig7-surrogate"
    title: ClassVar[str] = "R_K and the number of evaluations"

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """The whole sweep."""
        return mnist_sweep.jobs(scale, seeds)

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """For each solver, evaluations of all runs that regularize an order, by that order."""
        del scale
        arms = arms_of(results)
        plain = arms[0].values("train_loss")
        known = {name for arm in arms for x in arm.results.values() for name in x["evaluations"]}
        out: dict[str, Any] = {}
        for solver in SOLVERS:
            made = [name for name in PANELS[f"order {solver}"] if name in known]
            for arm in arms[1:] if made else []:
                into = out.setdefault(str(solver), {}).setdefault(
                    str(arm.order),
                    {"penalty": [], "nfe": [], "weight": [], "extra_loss": [], "seed": []},
                )
                losses = arm.values("train_loss")
                into["penalty"] += arm.listed("penalty")
                into["nfe"] += arm.listed("test_nfe", made[0])
                into["weight"] += [arm.weight] * len(arm.results)
                into["seed"] += list(arm.results)
                into["extra_loss"] += [
                    losses[seed] / plain[seed] - 1 if seed in plain else math.nan for seed in losses
                ]
        return out

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """A panel for each solver, a color for each order that is regularized."""
        return Chart(
            [
                Panel(
                    [
                        Line(points["penalty"], points["nfe"], f"R_{order}", i + 1, joined=False)
                        for i, (order, points) in enumerate(orders.items())
                    ],
                    f"solver of order {solver}",
                    "R_K of the run",
                    "NFE per test sample",
                    x_log=True,
                )
                for solver, orders in numbers.items()
            ]
        )

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """Evaluations rise with R_K; the fewest come from the solver's own order."""
        return [claim for solver in numbers for claim in _claims(solver, numbers[solver])]


def _claims(solver: str, orders: dict[str, Any]) -> list[Claim]:
    rho = {k: _correlations(x) for k, x in orders.items()}
    least = {k: fewest for k, x in orders.items() if (fewest := _least(x))}
    own = least.get(solver, {})
    others = [x for k, x in least.items() if k != solver]
    # By how much the best of the other orders is above the solver's own, seed by seed.
    above = [
        min(x[seed] for x in others) / own[seed]
        for seed in own
        if others and all(seed in x for x in others)
    ]
    # The paper has no solver of order 4.
    is_ours = solver == "4"
    return [
        Claim(
            f"Evaluations of a solver of order {solver} rise with R_K, for all K",
            "" if is_ours else "varies monotonically",
            f"rank correlation {', '.join(f'{spread(x)} for R_{k}' for k, x in rho.items())}",
            verdict(all_of(*(seeds_agree(x, at_least=0.9) for x in rho.values()))),
            is_ours=is_ours,
        ),
        Claim(
            f"The fewest evaluations of a solver of order {solver} come with R_{solver}",
            "" if is_ours else "for each order of solver",
            f"{', '.join(f'R_{k} {spread(list(x.values()))}' for k, x in least.items())}; with the "
            f"best weight, for at most {MOST:.0%} more training loss",
            verdict(_is_lowest(above)),
            is_ours=is_ours,
        ),
    ]


def _is_lowest(above: list[float]) -> bool | None:
    """No answer if two orders are as good: there are evaluations that no solver can do without."""
    if seeds_agree(above, at_least=TIE):
        return True
    return False if seeds_agree(above, at_most=1 / TIE) else None


def _correlations(points: dict[str, list[Any]]) -> list[float]:
    """Of penalty and evaluations over weights, for each seed."""
    by_seed: dict[int, list[tuple[float, float]]] = {}
    both = zip(points["penalty"], points["nfe"], strict=True)
    for seed, pair in zip(points["seed"], both, strict=True):
        by_seed.setdefault(seed, []).append(pair)
    return [rank_correlation(*map(list, zip(*pairs, strict=True))) for pairs in by_seed.values()]


def _least(points: dict[str, list[Any]]) -> dict[int, float]:
    """The fewest evaluations of a weight whose models are still good on average, by seed."""
    by_weight: dict[float, list[tuple[int, float, float]]] = {}
    each = zip(points["seed"], points["nfe"], points["extra_loss"], strict=True)
    for weight, told in zip(points["weight"], each, strict=True):
        by_weight.setdefault(weight, []).append(told)
    good = [
        {seed: nfe for seed, nfe, _ in told}
        for told in by_weight.values()
        if mean(extra for _, _, extra in told) <= MOST
    ]
    return min(good, key=lambda x: mean(x.values()), default={})
