"""A study of the paper: runs, the numbers they give, a figure, and claims."""

import abc
import dataclasses
import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ...registry import one_of
from ..files import Json
from ..sweep.plan import Job
from ..sweep.results import Result
from .chart import Chart
from .verdicts import Bound, verdict, VERDICTS


# Values of JSON: the contents of the file of a study, and the part of it that a study measures.
Record: TypeAlias = Json
Numbers: TypeAlias = Json


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim, and the measurement that decides it.

    - `statement`: the claim, in words.
    - `paper`: the paper's own number, if it has one.
    - `measured`: our number, with its spread over seeds.
    - `verdict`: one of `VERDICTS`.
    - `rule`: the thresholds.
    - `interval`: the intervals that were compared with the thresholds; empty if the measurement is
        deterministic.
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

    - `num_seeds`: the number of seeds; 0 if the study has no runs.
    - `remarks`: remarks on the settings, such as how weights were chosen.
    """

    name: str
    title: str
    num_seeds: int = 3
    remarks: tuple[str, ...] = ()

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """The runs of the study; none by default."""
        del scale, seeds
        return []

    @abc.abstractmethod
    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """Everything that the figure and the claims need, as values of JSON.

        **Arguments:**

        - `results`: the results of the jobs, in their order; see `taynode.lab.sweep.rows`.
        - `scale`: the scale of the study.
        """

    def table(self, numbers: Numbers) -> list[dict[str, str]]:
        """The rows of the table; none by default."""
        del numbers
        return []

    @abc.abstractmethod
    def chart(self, numbers: Numbers) -> Chart:
        """The figure."""

    @abc.abstractmethod
    def claims(self, numbers: Numbers) -> list[Claim]:
        """The claims on these numbers, with their verdicts."""


class Family(NamedTuple):
    """Studies that differ in their task alone.

    - `place`: the module and the name of a dictionary of these studies.
    - `members`: the ends of their names.
    """

    place: str
    members: tuple[str, ...]


BUDGETED = "digits", "two-moons", "oscillators", "mnist", "miniboone", "physionet"
FAMILIES = {
    "budgets": Family("taynode.lab.paper.budgets:STUDIES", BUDGETED),
    "easing": Family("taynode.lab.paper.easing:STUDIES", BUDGETED),
    "flow-matching": Family(
        "taynode.lab.paper.flow_matching:STUDIES",
        ("two-moons", "pinwheel", "checkerboard", "gaussians", "rings", "digits", "mnist"),
    ),
    "rivals": Family(
        "taynode.lab.paper.rivals:STUDIES",
        ("digits", "two-moons", "oscillators", "physionet", "miniboone"),
    ),
    "at-scale": Family("taynode.lab.paper.at_scale:STUDIES", ("mnist", "physionet", "images")),
}
# The first of these has the name that its family would have.
STOCHASTIC = "sde", "sde-spiral", "sde-digits", "sde-mnist"
# A family is done by its name, too.
GROUPS = {
    **{
        name: tuple(f"{name}-{member}" for member in family.members)
        for name, family in FAMILIES.items()
    },
    "sde-all": STOCHASTIC,
}
# The module and class of each study, so that nothing is imported before it is needed.
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
    "fig9-orders": "taynode.lab.paper.fig9_orders:ToyOrders",
    "fig10-nfe-variance": "taynode.lab.paper.fig10_variance:Variance",
    "fig11-classification-error": "taynode.lab.paper.fig11_error:ClassificationError",
    "fig12-mse": "taynode.lab.paper.fig12_mse:MeanSquareError",
    "table2-mnist-flow": "taynode.lab.paper.table2_mnist_flow:MnistFlowTable",
    "table3-mnist": "taynode.lab.paper.table3_mnist:MnistTable",
    "table4-miniboone": "taynode.lab.paper.table4_miniboone:MinibooneTable",
    "taylor-cost": "taynode.lab.paper.taylor_cost:TaylorCost",
    "two-moons": "taynode.lab.paper.two_moons:TwoMoonsTable",
    "weight-schedules": "taynode.lab.paper.schedules:WeightSchedules",
    "oscillators": "taynode.lab.paper.latent_tables:OscillatorsTable",
    "physionet": "taynode.lab.paper.latent_tables:PhysionetTable",
    **{name: place for family, (place, _) in FAMILIES.items() for name in GROUPS[family]},
    **dict.fromkeys(STOCHASTIC, "taynode.lab.paper.sde:STUDIES"),
}


def seeds_of(study: AbstractStudy, scale: str, wanted: int | None = None) -> range:
    """The seeds of the runs: `wanted` seeds or, by default, `num_seeds`; one at `smoke`."""
    if not study.num_seeds:
        return range(0)
    return range(wanted or (1 if scale == "smoke" else study.num_seeds))


def find_study(name: str) -> AbstractStudy:
    """A study by its name."""
    one_of("study", name, STUDIES)
    module, _, attribute = STUDIES[name].partition(":")
    found = getattr(importlib.import_module(module), attribute)
    return found[name] if isinstance(found, dict) else found()


def names_of(names: Iterable[str]) -> list[str]:
    """The names of studies, with groups replaced by their members; each study comes once."""
    found = []
    for name in names:
        one_of("study", name, [*STUDIES, *GROUPS])
        found += GROUPS.get(name, (name,))
    return list(dict.fromkeys(found))


def has_studies(directory: Path) -> bool:
    """Whether a directory has results of studies."""
    return any((directory / f"{name}.json").exists() for name in STUDIES)
