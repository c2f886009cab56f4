"""Figure 7: whether R_K tells how many evaluations a solver of order K needs."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import Job
from . import mnist_sweep
from .arms import arms_of
from .chart import Chart, Line, Panel
from .mnist_sweep import SOLVERS
from .statistics import rank_correlation
from .study import AbstractStudy, Claim, verdict


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
        out: dict[str, Any] = {}
        for solver, name in SOLVERS.items():
            key = f"{name} 1e-05"
            for arm in arms:
                known = [x for x in arm.results.values() if key in x["evaluations"]]
                if arm.order == 0 or not known:
                    continue
                into = out.setdefault(str(solver), {}).setdefault(
                    str(arm.order), {"penalty": [], "nfe": [], "weight": []}
                )
                into["penalty"] += arm.listed("penalty")
                into["nfe"] += arm.listed("test_nfe", key)
                into["weight"] += [arm.weight] * len(arm.results)
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
        claims = []
        for solver, orders in numbers.items():
            if solver not in orders:
                continue
            points = orders[solver]
            rho = rank_correlation(points["penalty"], points["nfe"])
            least = {order: min(points["nfe"]) for order, points in orders.items()}
            best = min(least, key=lambda order: least[order])
            claims += [
                Claim(
                    f"R_{solver} tells the evaluations of a solver of order {solver}",
                    "nearly monotone",
                    f"rank correlation {rho:.2f}",
                    verdict(rho > 0.9, rho),
                ),
                Claim(
                    f"The fewest evaluations of a solver of order {solver} come with R_{solver}",
                    "no number",
                    ", ".join(f"R_{order} {nfe:.3g}" for order, nfe in least.items()),
                    verdict(least[best] >= 0.99 * least[solver]),
                ),
            ]
        return claims
