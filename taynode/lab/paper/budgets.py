"""Not in the paper: budgets of evaluations and prices, beside constant weights."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from ..config import RegularizerConfig, SolveConfig, TrainConfig
from ..sweep.plan import EvaluationConfig
from .arms import defaults_of
from .budget_claims import (
    as_good_claim,
    Budgeted,
    kept_claim,
    NAMES,
    price_claims,
    training_claim,
)
from .chart import Chart, Line, Panel
from .r2_sweep import LOOSE, TIGHT
from .statistics import deviation, mean
from .study import Claim, Numbers
from .table3_mnist import MnistTable
from .tables import AbstractTable, COLUMNS, TRAINING_NFE


SHARES = (0.75, 0.5)
PRICES = (0.001, 0.003, 0.01)
GIVEN = "unregularized"
# A price that begins before anything was learned may keep the model from learning.
WARMUP = ("warmup", 0.3)


def arms_of_task(
    need: float, weights: Mapping[str, Sequence[float]]
) -> dict[str, RegularizerConfig]:
    """Unregularized, constant weights, budgets and prices."""
    return {
        GIVEN: RegularizerConfig(),
        **{
            f"{NAMES[name]}, weight {weight:g}": RegularizerConfig(name, weight)
            for name, chosen in weights.items()
            for weight in chosen
        },
        **{
            f"{NAMES[name]}, budget {share:g}": RegularizerConfig(name, budget=share * need)
            for name in NAMES
            for share in SHARES
        },
        **{f"price {price:g}": RegularizerConfig("nfe", price, *WARMUP) for price in PRICES},
    }


@dataclasses.dataclass(frozen=True)
class Basis:
    """What studies of budgets have in common on a task.

    - `name`, `title`: those of the task in names and titles of studies.
    - `task`: the name of the task.
    - `need`: the evaluations of unregularized models, which were measured before.
    - `weights`: constant weights of R_2 and R_3, over several decades.
    - `evaluation`: the solve that evaluations are counted for. Those of budgets and of the control
        are the same, on all test samples that the task has at the end.
    - `steps`: the number of RK4 steps in training; `None` for adaptive steps.
    - `settings`: the settings at a scale, if they are not those of the task.
    - `num_seeds`: the number of seeds of the study of budgets.
    """

    name: str
    title: str
    task: str
    need: float
    weights: Mapping[str, Sequence[float]]
    evaluation: EvaluationConfig = TIGHT
    steps: int | None = None
    settings: Callable[[str], TrainConfig] | None = None
    num_seeds: int = 3

    def defaults(self, scale: str) -> TrainConfig:
        """The settings of the task, with the evaluation that budgets are counted for.

        At `smoke` the loose tolerance of the task is kept, which takes less time.
        """
        settings = self.settings or functools.partial(defaults_of, self.task)
        defaults = settings(scale)
        if scale == "smoke":
            return defaults
        solve = self.evaluation.solve
        tolerances = {"rtol": solve.rtol, "atol": solve.atol}
        evaluation: SolveConfig = dataclasses.replace(defaults.evaluation, **tolerances)
        return dataclasses.replace(defaults, evaluation=evaluation)


class Budgets(AbstractTable):
    """Budgets of 0.75 and 0.5 of the evaluations that unregularized models need, and prices."""

    unit = "nats"
    needs = (TRAINING_NFE,)
    columns: ClassVar[dict[str, str]] = {**COLUMNS, "training NFE": TRAINING_NFE}

    def __init__(self, basis: Basis):
        self.basis, self.task, self.num_seeds = basis, basis.task, basis.num_seeds
        self.name = f"budgets-{basis.name}"
        self.title = f"{basis.title}: budgets, prices and constant weights"
        self.arms = arms_of_task(basis.need, basis.weights)
        self.rows = tuple((arm, basis.steps) for arm in self.arms)
        self.smoke_rows = (self.rows[0], (f"R_3, budget {SHARES[0]:g}", basis.steps))

    def defaults(self, scale: str) -> TrainConfig:
        """The settings of the task, evaluated as budgets are counted."""
        return self.basis.defaults(scale)

    def chart(self, numbers: Numbers) -> Chart:
        """Loss against evaluations: budgets beside the front of constant weights, or of prices.

        Dots are means over seeds, with standard deviations. Vertical lines are the budgets.
        """
        rows = {row["model"]: row for row in numbers["rows"] if row["loss"]}
        every = [x for row in rows.values() for x in row["loss"]]
        ends = [min(every, default=0.0), max(every, default=1.0)]
        guides = [
            Line([share * self.basis.need] * 2, ends, color=-1, dots=False, width=0.8)
            for share in SHARES
        ]
        panels = []
        for title in NAMES.values():
            constants = "price" if title == NAMES["nfe"] else f"{title}, weight"
            front = [GIVEN, *(name for name in rows if name.startswith(constants))]
            budgets = [name for name in rows if name.startswith(f"{title}, budget")]
            marks = [
                _marks([rows[x] for x in front if x in rows], "constant weights, prices", 0),
                _marks([rows[x] for x in budgets], "budgets", 1, joined=False),
            ]
            x = "evaluations per test sample"
            panels.append(Panel([*guides, *marks], title, x, f"test loss, {self.unit}"))
        return Chart(panels, share_y=True)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Whether budgets are kept, what they cost, and what prices buy."""
        basis = self.basis
        found = Budgeted(numbers, basis.steps, basis.need, basis.weights)
        return [
            kept_claim(found),
            *(as_good_claim(found, name) for name in basis.weights),
            training_claim(found),
            *price_claims(found, PRICES),
        ]


def _marks(rows: Sequence[Numbers], label: str, color: int, *, joined: bool = True) -> Line:
    """The means of rows, from few evaluations to many, with their standard deviations."""
    found = sorted(((row["NFE"], row["loss"]) for row in rows), key=lambda x: mean(x[0]))
    nfe, loss = [x for x, _ in found], [x for _, x in found]
    return Line(
        list(map(mean, nfe)),
        list(map(mean, loss)),
        label,
        color,
        joined=joined,
        x_error=list(map(deviation, nfe)),
        y_error=list(map(deviation, loss)),
    )


BASES = {
    basis.name: basis
    for basis in (
        Basis(
            "digits",
            "Digits",
            "digits",
            need=118.0,
            weights={"r2": (0.003, 0.03, 0.1, 1.0), "r3": (1e-4, 1e-3, 1e-2, 0.1)},
            num_seeds=5,
        ),
        Basis(
            "two-moons",
            "Two moons",
            "density2d",
            need=56.0,
            weights={"r2": (0.003, 0.03, 0.1, 1.0), "r3": (1e-4, 1e-3, 1e-2, 0.1)},
            evaluation=LOOSE,
            num_seeds=5,
        ),
        Basis(
            "oscillators",
            "Oscillators",
            "oscillators",
            need=154.0,
            weights={"r2": (0.003, 0.01, 0.1, 0.3), "r3": (1e-4, 3e-4, 1e-3, 3e-3)},
            evaluation=LOOSE,
            num_seeds=5,
        ),
        Basis(
            "mnist",
            "MNIST on a fixed grid",
            "mnist",
            need=66.0,
            weights={"r2": (3e-5, 3e-4, 3e-3, 3e-2), "r3": (3e-6, 3e-5, 3e-4, 3e-3)},
            steps=4,
            # Those of Table 3, whose unregularized models have these evaluations.
            settings=MnistTable().defaults,
        ),
        Basis(
            "miniboone",
            "MINIBOONE",
            "miniboone",
            need=132.0,
            weights={"r2": (0.1, 0.3, 1.0, 10.0), "r3": (0.03, 0.1, 1.0, 10.0)},
        ),
        Basis(
            "physionet",
            "PhysioNet",
            "physionet",
            need=144.0,
            weights={"r2": (0.3, 1.0, 3.0, 10.0), "r3": (0.1, 1.0, 3.0, 10.0)},
        ),
    )
}
STUDIES = {study.name: study for study in map(Budgets, BASES.values())}
