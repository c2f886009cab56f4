"""Figure 6: the best order of the penalty for each order of the solver."""

from collections.abc import Sequence
from typing import NamedTuple

from ..sweep.plan import Job
from ..sweep.results import Result
from . import mnist_sweep
from .arms import Arm, arms_of
from .chart import Chart, Panel
from .fronts import front_of, WeightFront
from .mnist_sweep import ADAPTIVE_ORDER, SOLVERS
from .selection import chosen_on_other_seeds
from .statistics import mean, spread
from .study import AbstractStudy, Claim, judged, Numbers
from .verdicts import ratio


# The evaluations of each panel; the first one that was made counts. Dopri5 takes so few steps at
# the larger tolerance that orders hardly differ.
PANELS = {
    **{f"order {order}": (f"{name} 1e-05",) for order, name in SOLVERS.items()},
    "order 5": (f"{SOLVERS[5]} 1.4e-08", f"{SOLVERS[5]} 1e-05"),
    "adaptive order": (f"{ADAPTIVE_ORDER} 1e-05",),
}


class OrderOfRegularization(AbstractStudy):
    """MNIST, R_2 to R_5, and solvers of orders 2 to 5 and of adaptive order."""

    name = "fig6-order-of-regularization"
    title = "Loss against evaluations, by order of the penalty and of the solver"
    remarks = (
        "A front takes the best of eight weights at each loss, by the same runs that are shown; "
        "all orders have eight",
    )

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """The whole sweep."""
        return mnist_sweep.jobs(scale, seeds)

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """For each solver, the name of the evaluation, and a front for each order."""
        del scale
        arms = arms_of(results)
        return {
            panel: {
                "evaluation": name,
                "fronts": {
                    str(order): front_of(
                        [arm for arm in arms if arm.order in (0, order)], evaluation=name
                    )
                    for order in sorted({arm.order for arm in arms} - {0})
                },
            }
            for panel, name in evaluations_of(arms).items()
        }

    def chart(self, numbers: Numbers) -> Chart:
        """A panel for each solver, a line for each order of the penalty."""
        return Chart(
            [
                Panel(
                    [
                        mark
                        for i, (order, front) in enumerate(panel["fronts"].items())
                        for mark in WeightFront(**front).marks(f"R_{order}", i + 1, crosses=False)
                    ],
                    title_of(name, panel["evaluation"]),
                    "NFE per test sample",
                    "increase of the training loss, %",
                    x_log=True,
                )
                for name, panel in numbers.items()
            ],
            share_y=True,
            height=3.2,
        )

    def claims(self, numbers: Numbers) -> list[Claim]:
        """The claims of the caption on each panel, and on high orders."""
        areas = {name: Areas.of(panel) for name, panel in numbers.items()}
        none = Areas({}, 0.02)
        return [
            *(_best(areas.get(f"order {k}", none), k, paper) for k, paper in BEST.items()),
            _none_is_best(areas.get("order 5", none)),
            _higher_is_better(areas.get("adaptive order", none)),
            _high_orders(areas),
        ]


# The claims of the paper, which has no solver of order 4.
BEST = {
    "2": "the best tradeoff",
    "3": "the best tradeoff, but the difference is small",
    "4": "",
}
TOO_FEW = "too few orders or solvers at this scale"


class Areas(NamedTuple):
    """Areas under the fronts of a solver, `[order][seed]`, and their resolution."""

    by_order: dict[str, dict[str, float]]
    resolution: float

    @classmethod
    def of(cls, panel: Numbers) -> "Areas":
        """The areas up to the largest loss that all orders reach."""
        fronts = {order: WeightFront(**front) for order, front in panel["fronts"].items()}
        reach = min(0.5, max(0.01, min(front.reach() for front in fronts.values())))
        fewest = min(x for front in fronts.values() for nfe in front.nfe for x in nfe.values())
        return cls(
            {order: front.area(reach) for order, front in fronts.items()},
            mnist_sweep.half_a_step(panel["evaluation"], fewest),
        )

    def relative(self, order: str, to: str) -> list[float]:
        """The area of an order over that of another, for each seed that has both."""
        above, below = self.by_order[order], self.by_order[to]
        return [above[seed] / below[seed] for seed in above if seed in below]

    def seeds(self) -> list[str]:
        """The seeds that have runs of all orders."""
        return sorted(set.intersection(*(set(x) for x in self.by_order.values())))

    def to_best_rival(self, order: str, rivals: Sequence[str]) -> list[float]:
        """The area of an order over that of its best rival, which is chosen on the other seeds."""

        def best(seeds: list[str]) -> str:
            return min(rivals, key=lambda k: mean(self.by_order[k][seed] for seed in seeds))

        return [
            self.by_order[order][seed] / self.by_order[rival][seed]
            for seed, rival in chosen_on_other_seeds(self.seeds(), best).items()
        ]


def _best(areas: Areas, order: str, paper: str) -> Claim:
    """Whether all other orders have more area under their fronts."""
    rivals = [k for k in areas.by_order if k != order] if order in areas.by_order else []
    others = {k: areas.relative(k, order) for k in rivals}
    words = [f"R_{k} {spread(x)}" for k, x in others.items()] or [TOO_FEW]
    return judged(
        f"For a solver of order {order}, R_{order} gives the best trade-off",
        paper,
        f"area under the front, relative to that of R_{order}: {', '.join(words)}",
        *(
            ratio(f"R_{k} over R_{order}", x, at_least=1.0, resolution=areas.resolution)
            for k, x in others.items()
        ),
        rule="all others have more area; intervals are longer by half a step",
        is_ours=not paper,
    )


def _none_is_best(areas: Areas) -> Claim:
    """Whether no order is better than its best rival by more than half a step."""
    orders = sorted(areas.by_order) if len(areas.by_order) > 2 else []
    least = [f"R_{k} {spread(list(areas.by_order[k].values()))}" for k in orders]
    to_rival = {k: areas.to_best_rival(k, [x for x in orders if x != k]) for k in orders}
    return judged(
        "For a solver of order 5, results are mixed: no order is clearly the best",
        "mixed",
        f"area under the front: {', '.join(least)}" if least else TOO_FEW,
        *(
            ratio(f"R_{k} over the best other", x, at_least=1 / (1 + areas.resolution))
            for k, x in to_rival.items()
        ),
        rule="no order has less area than the best other by more than half a step; which is the "
        "best other is chosen on other seeds",
    )


def _higher_is_better(areas: Areas) -> Claim:
    """Whether the highest order has a little less area than the lowest, with adaptive order."""
    orders = sorted(areas.by_order)
    gains = areas.relative(orders[-1], orders[0]) if len(orders) > 1 else []
    return judged(
        "For a solver of adaptive order, high orders are slightly better",
        "slightly, at a tolerance of 1.4e-8",
        f"at 1e-5, area of R_{orders[-1]} relative to that of R_{orders[0]}: {spread(gains)}"
        if gains
        else TOO_FEW,
        ratio("highest over lowest order", gains, at_least=0.8, at_most=0.98),
        rule="2 to 20 % less area",
    )


def _high_orders(areas: dict[str, Areas]) -> Claim:
    """Whether orders above 3 have much less area than the better of R_2 and R_3."""
    found: dict[str, list[float]] = {}
    for panel, of_panel in areas.items():
        # The paper has no solver of order 4.
        if panel == "order 4" or not {"2", "3"} <= set(of_panel.by_order):
            continue
        for order in sorted(set(of_panel.by_order) - {"2", "3"}):
            found[f"{panel}, R_{order}"] = of_panel.to_best_rival(order, ["2", "3"])
    words = [f"{name}: {spread(relative)}" for name, relative in sorted(found.items())]
    return judged(
        "Orders above 3 gain little",
        "in the conclusions",
        "area relative to that of the better of R_2 and R_3, chosen on other seeds: "
        f"{'; '.join(words)}"
        if words
        else TOO_FEW,
        *(ratio(name, relative, at_least=0.95) for name, relative in sorted(found.items())),
        rule="at most 5 % less area, for each of the paper's solvers",
    )


def evaluations_of(arms: Sequence[Arm]) -> dict[str, str]:
    """For each panel, the first of its evaluations that was made, if any."""
    known = {name for arm in arms for x in arm.results.values() for name in x["evaluations"]}
    return {
        panel: made[0]
        for panel, names in PANELS.items()
        if (made := [name for name in names if name in known])
    }


def title_of(panel: str, evaluation: str) -> str:
    """The title of a panel: the solver and its tolerance."""
    solver, _, tolerance = evaluation.partition(" ")
    return f"{panel}: {solver.replace('_', '-')}, {tolerance.replace('e-0', 'e-')}"
