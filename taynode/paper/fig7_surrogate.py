"""Figure 7: whether R_K tells how many evaluations a solver of order K needs."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import Job
from . import mnist_sweep
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
        arms = mnist_sweep.arms_of(results)
        out: dict[str, Any] = {}
        for solver, name in SOLVERS.items():
            key = f"{name} 1e-05"
            for arm in arms:
                if arm.order == 0 or key not in arm.results[0]["evaluations"]:
                    continue
                into = out.setdefault(str(solver), {}).setdefault(
                    str(arm.order), {"penalty": [], "nfe": [], "weight": []}
                )
                into["penalty"] += arm.values("penalty")
                into["nfe"] += arm.values("test_nfe", key)
                into["weight"] += [arm.weight] * len(arm.results)
        return out

    def draw(self, numbers: dict[str, Any], figure: Any) -> None:
        """A panel for each solver, a color for each order that is regularized."""
        figure.set_size_inches(3 * len(numbers), 3.4)
        panels = figure.subplots(1, len(numbers), squeeze=False)[0]
        for axes, (solver, orders) in zip(panels, numbers.items(), strict=True):
            for i, (order, points) in enumerate(orders.items()):
                axes.plot(points["penalty"], points["nfe"], ".", color=f"C{i}", label=f"R_{order}")
            axes.set(title=f"solver of order {solver}", xlabel="R_K of the run", xscale="log")
        panels[0].set_ylabel("NFE per test sample")
        panels[0].legend()

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
                    verdict(rho > 0.9),
                ),
                Claim(
                    f"The fewest evaluations of a solver of order {solver} come with R_{solver}",
                    "no number",
                    ", ".join(f"R_{order} {nfe:.3g}" for order, nfe in least.items()),
                    verdict(least[best] >= 0.99 * least[solver]),
                ),
            ]
        return claims
