"""Figure 6: which order to regularize for which order of solver."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import Job
from . import mnist_sweep
from .arms import arms_of
from .chart import Chart, Panel
from .fronts import Front, front_of
from .mnist_sweep import ADAPTIVE_ORDER, SOLVERS
from .statistics import spread
from .study import AbstractStudy, all_of, Claim, seeds_agree, verdict


# Several evaluations, of which the first one that was made counts. Dopri5 needs hardly any steps at
# the larger tolerance, so there is nothing to be told apart.
PANELS = {
    **{f"order {order}": (f"{name} 1e-05",) for order, name in SOLVERS.items()},
    "order 5": (f"{SOLVERS[5]} 1.4e-08", f"{SOLVERS[5]} 1e-05"),
    "adaptive order": (f"{ADAPTIVE_ORDER} 1e-05",),
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
                    [arm for arm in arms if arm.order in (0, order)], evaluation=made[0]
                )
                for order in sorted({arm.order for arm in arms} - {0})
            }
            for panel, names in PANELS.items()
            if (made := [name for name in names if name in known])
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
        """What the caption says of each panel, and of high orders."""
        areas = {
            panel: {order: Front(**front).area() for order, front in fronts.items()}
            for panel, fronts in numbers.items()
        }
        claims = [
            _best(areas, panel, order, paper)
            for panel, order, paper in (
                ("order 2", "2", "the best tradeoff"),
                ("order 3", "3", "the best tradeoff, but the difference is small"),
                ("order 4", "4", ""),
            )
        ]
        return [*claims, _mixed(areas), _higher_is_better(areas), _high_orders(areas)]


Areas = dict[str, dict[str, dict[str, float]]]
TOO_FEW = "too few orders or solvers at this scale"


def _relative(of_panel: dict[str, dict[str, float]], order: str, to: str) -> list[float]:
    """The area of an order in that of another, for each seed that has both."""
    above, below = of_panel[order], of_panel[to]
    return [above[seed] / below[seed] for seed in above if seed in below]


def _best(areas: Areas, panel: str, order: str, paper: str) -> Claim:
    """Whether all other orders leave more area."""
    of_panel = areas.get(panel, {})
    rivals = [k for k in of_panel if k != order] if order in of_panel else []
    others = {k: _relative(of_panel, k, order) for k in rivals}
    answers = [seeds_agree(x, at_least=1.0) for x in others.values()] or [None]
    words = [f"R_{k} {spread(x)}" for k, x in others.items()] or [TOO_FEW]
    return Claim(
        f"For a solver of {panel}, R_{order} gives the best trade-off",
        paper,
        f"area under the front, relative to that of R_{order}: {', '.join(words)}",
        verdict(all_of(*answers)),
        is_ours=not paper,
    )


def _mixed(areas: Areas) -> Claim:
    """Whether no order is the best for all seeds."""
    of_panel = areas.get("order 5", {})
    seeds = {seed for of_order in of_panel.values() for seed in of_order}
    best = [
        min((k for k in of_panel if seed in of_panel[k]), key=lambda k, s=seed: of_panel[k][s])
        for seed in sorted(seeds)
    ]
    words = [f"R_{k} {spread(list(x.values()))}" for k, x in of_panel.items()]
    enough = len(best) > 1 and len(of_panel) > 2
    return Claim(
        "For a solver of order 5, results are mixed: the best order differs",
        "mixed",
        f"area under the front: {', '.join(words)}; best: {', '.join(f'R_{k}' for k in best)}"
        if enough
        else TOO_FEW,
        verdict(len(set(best)) > 1 if enough else None),
    )


def _higher_is_better(areas: Areas) -> Claim:
    """Whether the highest order leaves less area than the lowest, with adaptive order."""
    of_panel = areas.get("adaptive order", {})
    orders = sorted(of_panel)
    gains = _relative(of_panel, orders[-1], orders[0]) if len(orders) > 1 else []
    return Claim(
        "For a solver of adaptive order, high orders are slightly better",
        "slightly",
        f"area of R_{orders[-1]} relative to that of R_{orders[0]}: {spread(gains)}"
        if gains
        else TOO_FEW,
        verdict(seeds_agree(gains, at_most=0.999)),
    )


def _high_orders(areas: Areas) -> Claim:
    """How much less area orders above 3 leave than order 3, for each solver."""
    words, answers = [], []
    for panel, of_panel in areas.items():
        for order in of_panel:
            if int(order) > 3 and "3" in of_panel:
                relative = _relative(of_panel, order, "3")
                words.append(f"{panel}, R_{order}: {spread(relative)}")
                answers.append(seeds_agree(relative, at_least=0.95))
    return Claim(
        "Orders above 3 gain little",
        "in the conclusions",
        f"area relative to that of R_3: {'; '.join(words)}" if words else TOO_FEW,
        verdict(all_of(*answers) if answers else None),
    )
