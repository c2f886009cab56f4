"""Figure 6: which order to regularize for which order of solver."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import Job
from . import mnist_sweep
from .arms import arms_of
from .chart import Chart, Panel
from .fronts import Front, front_of
from .mnist_sweep import ADAPTIVE_ORDER, SOLVERS
from .statistics import mean, spread
from .study import AbstractStudy, Claim, verdict


NAMES = {order: f"{name} 1e-05" for order, name in SOLVERS.items()}
PANELS = {f"order {order}": name for order, name in NAMES.items()} | {
    "adaptive order": f"{ADAPTIVE_ORDER} 1e-05"
}


class OrderOfRegularization(AbstractStudy):
    """MNIST, R_2 to R_5, and solvers of orders 2 to 5 and of adaptive order."""

    name: ClassVar[str] = "fig6-order-of-regularization"
    title: ClassVar[str] = "Trade-offs of loss and evaluations, by orders of penalty and solver"

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """The whole sweep."""
        return mnist_sweep.jobs(scale, seeds)

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """For each solver and order: losses and evaluations of all weights and seeds."""
        del scale
        arms = arms_of(results)
        known = {name for arm in arms for x in arm.results.values() for name in x["evaluations"]}
        return {
            panel: {
                str(order): front_of(
                    [arm for arm in arms if arm.order in (0, order)], evaluation=name
                )
                for order in sorted({arm.order for arm in arms} - {0})
            }
            for panel, name in PANELS.items()
            if name in known
        }

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """A panel for each solver, a line for each order of the penalty."""
        return Chart(
            [
                Panel(
                    [
                        Front(**front).line(f"R_{order}", i + 1)
                        for i, (order, front) in enumerate(fronts.items())
                    ],
                    f"solver of {panel}",
                    "NFE",
                    "training loss",
                    y_log=True,
                )
                for panel, fronts in numbers.items()
            ],
            share_y=True,
        )

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """The same order is best, and high ones gain little."""
        areas = {
            panel: {order: Front(**front).area() for order, front in fronts.items()}
            for panel, fronts in numbers.items()
        }
        matched, words = [], []
        for order in SOLVERS:
            of_panel = areas.get(f"order {order}", {})
            if str(order) not in of_panel:
                continue
            means = {k: mean(x) for k, x in of_panel.items()}
            best = min(means, key=lambda k: means[k])
            matched.append(best == str(order))
            words.append(
                f"order {order}: best R_{best} ({spread(of_panel[best])}; "
                f"R_{order} {spread(of_panel[str(order)])})"
            )
        return [
            Claim(
                "The best trade-off for a solver of order m comes from regularizing R_m",
                "no number",
                "; ".join(words) or "too few orders at this scale",
                verdict(all(matched) if len(matched) > 1 else None),
            ),
            _high_orders(areas),
        ]


def _high_orders(areas: dict[str, dict[str, list[float]]]) -> Claim:
    """How much less area the best order above 3 leaves than order 3, for each solver."""
    gains = {
        panel: 1 - min(mean(x) for order, x in of_panel.items() if int(order) > 3) / mean(third)
        for panel, of_panel in areas.items()
        if (third := of_panel.get("3")) and any(int(order) > 3 for order in of_panel)
    }
    return Claim(
        "Orders above 3 gain little",
        "no number",
        "; ".join(f"{panel}: {gain:.0%} less area than R_3" for panel, gain in gains.items())
        or "too few orders at this scale",
        verdict(max(gains.values()) < 0.05 if gains else None, *gains.values()),
    )
