"""What a study is: runs, numbers made of them, a figure, and what the paper says about it."""

import abc
import dataclasses
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from ...registry import one_of
from ..sweep.plan import Job
from .chart import Chart
from .verdicts import Bound, verdict, VERDICTS


@dataclasses.dataclass(frozen=True)
class Claim:
    """Something that the paper says, or that we say, and what was measured.

    - `statement`: the claim, in words.
    - `paper`: the paper's own number, if it gives one; says so if the claim is not the paper's.
    - `measured`: our number, with its spread over seeds.
    - `verdict`: one of `VERDICTS`.
    - `rule`: the thresholds. Each claim that `judged` makes is judged by intervals.
    - `interval`: the intervals that were compared with the thresholds; empty if chance has no part
        in what was measured.
    - `is_ours`: whether the claim is not in the paper.
    """

    statement: str
    paper: str
    measured: str
    verdict: str
    rule: str = ""
    interval: str = ""
    is_ours: bool = False

    def __post_init__(self):
        one_of("verdict", self.verdict, VERDICTS)
        if self.is_ours and not self.paper:
            object.__setattr__(self, "paper", "not in the paper")


def judged(
    statement: str,
    paper: str,
    measured: str,
    *bounds: Bound,
    rule: str,
    is_ours: bool = False,
) -> Claim:
    """A claim that holds if all bounds are kept; see `taynode.lab.paper.verdicts`."""
    interval = "; ".join(bound.in_words() for bound in bounds) or "nothing to compare"
    return Claim(statement, paper, measured, verdict(bounds), rule, interval, is_ours)


class StudyFailed(Exception):
    """A study could not be done. The message says why."""


class AbstractStudy(abc.ABC):
    """A figure or table of the paper.

    - `num_seeds`: how many are wanted; none if it has no runs.
    - `remarks`: what a reader has to know of its settings, such as how weights were chosen.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    num_seeds: ClassVar[int] = 3
    remarks: ClassVar[tuple[str, ...]] = ()

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """The runs that it is made of; none by default."""
        del scale, seeds
        return []

    @abc.abstractmethod
    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """Everything that the figure and the claims need, as plain data.

        **Arguments:**

        - `results`: of the jobs, in their order, as `taynode.lab.sweep.table` keeps them.
        - `scale`: of the study.
        """

    def table(self, numbers: dict[str, Any]) -> list[dict[str, str]]:
        """Rows to be read, if it has a table; none by default."""
        del numbers
        return []

    @abc.abstractmethod
    def chart(self, numbers: dict[str, Any]) -> Chart:
        """What is drawn."""

    @abc.abstractmethod
    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """What the paper says of it."""


# By name: where the class is, so that nothing is imported before it is needed.
STUDIES = {
    "fig1-toy": "taynode.lab.paper.fig1_toy:Toy",
    "fig2-solver-order": "taynode.lab.paper.fig2_solver_order:SolverOrder",
    "fig3-training": "taynode.lab.paper.fig3_training:EvaluationsDuringTraining",
    "fig4-latent": "taynode.lab.paper.fig4_latent:LatentPaths",
    "fig5-pareto": "taynode.lab.paper.fig5_pareto:Pareto",
    "fig6-order-of-regularization": "taynode.lab.paper.fig6_orders:OrderOfRegularization",
    "fig7-surrogate": "taynode.lab.paper.fig7_surrogate:Surrogate",
    "fig8a-calibration": "taynode.lab.paper.fig8a_calibration:Calibration",
    "fig8b-nfe-overfitting": "taynode.lab.paper.fig8_weights:TrainAndTest",
    "fig8c-generalization": "taynode.lab.paper.fig8_weights:Generalization",
    "fig9-taylor": "taynode.lab.paper.fig9_taylor:TaylorPolynomials",
    "fig10-nfe-variance": "taynode.lab.paper.fig8_weights:Variance",
    "fig11-classification-error": "taynode.lab.paper.fig8_weights:ClassificationError",
    "fig12-mse": "taynode.lab.paper.fig12_mse:MeanSquareError",
    "table2-mnist-flow": "taynode.lab.paper.table2_mnist_flow:MnistFlowTable",
    "table3-mnist": "taynode.lab.paper.table3_mnist:MnistTable",
    "table4-miniboone": "taynode.lab.paper.table4_miniboone:MinibooneTable",
    "taylor-cost": "taynode.lab.paper.taylor_cost:TaylorCost",
    "two-moons": "taynode.lab.paper.two_moons:TwoMoonsTable",
    "weight-schedules": "taynode.lab.paper.schedules:WeightSchedules",
    "oscillators": "taynode.lab.paper.latent_tables:OscillatorsTable",
    "physionet": "taynode.lab.paper.latent_tables:PhysionetTable",
}


def seeds_of(study: AbstractStudy, scale: str, wanted: int | None = None) -> range:
    """Of its runs: as many as are wanted or, by default, as it should have; one at `smoke`."""
    if not study.num_seeds:
        return range(0)
    return range(wanted or (1 if scale == "smoke" else study.num_seeds))


def find_study(name: str) -> AbstractStudy:
    """A study by its name."""
    one_of("study", name, STUDIES)
    module, _, kind = STUDIES[name].partition(":")
    return getattr(importlib.import_module(module), kind)()


def has_studies(directory: Path) -> bool:
    """Whether there are results of studies in a directory."""
    return any((directory / f"{name}.json").exists() for name in STUDIES)
