"""Not in the paper: budgets of evaluations and prices, beside constant weights."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from ..config import RegularizerConfig, SolveConfig, TrainConfig
from ..sweep.plan import EvaluationConfig
from .arms import defaults_of
from .budget_claims import (
    as_good_claim,
    Budgeted,
    kept_claim,
    price_claims,
    training_claim,
)
from .r2_sweep import LOOSE, TIGHT
from .study import Claim, Numbers
from .table3_mnist import MnistTable
from .tables import AbstractTable, COLUMNS


SHARES = (0.75, 0.5)
PRICES = (0.001, 0.003, 0.01)
NAMES = {"r2": "R_2", "r3": "R_3", "nfe": "expected NFE"}
# A price that begins before anything was learned may keep the model from learning.
WARMUP = ("warmup", 0.3)


def arms_of_task(need: float, weights: dict[str, Sequence[float]]) -> dict[str, RegularizerConfig]:
    """Unregularized, constant weights, budgets and prices."""
    return {
        "unregularized": RegularizerConfig(),
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


class AbstractBudgets(AbstractTable):
    """Budgets of 0.75 and 0.5 of the evaluations that unregularized models need, and prices.

    - `need`: the evaluations of unregularized models, which were measured before.
    - `weights`: constant weights of R_2 and R_3, over several decades.
    - `evaluation`: the solve that evaluations are counted for, in double precision.
    - `steps`: the number of RK4 steps in training; `None` for adaptive steps.
    """

    need: ClassVar[float]
    weights: ClassVar[dict[str, Sequence[float]]]
    evaluation: ClassVar[EvaluationConfig] = TIGHT
    steps: ClassVar[int | None] = None
    unit = "nats"
    columns: ClassVar[dict[str, str]] = {**COLUMNS, "training NFE": "training_nfe"}

    def __init_subclass__(cls, **options: object):
        super().__init_subclass__(**options)
        cls.arms = arms_of_task(cls.need, cls.weights)
        cls.rows = tuple((arm, cls.steps) for arm in cls.arms)
        cls.smoke_rows = (cls.rows[0], (f"R_3, budget {SHARES[0]:g}", cls.steps))
        cls.beside = cls.evaluation

    @property
    def count(self) -> str:
        """The column of evaluations."""
        return f"NFE {self.evaluation.name}"

    def settings(self, scale: str) -> TrainConfig:
        """The settings of the task."""
        return defaults_of(self.task, scale)

    def defaults(self, scale: str) -> TrainConfig:
        """The settings of the task, with the evaluation that budgets are counted for.

        At `smoke` the loose tolerance of the task is kept, which takes less time.
        """
        defaults = self.settings(scale)
        if scale == "smoke":
            return defaults
        solve = self.evaluation.solve
        tolerances = {"rtol": solve.rtol, "atol": solve.atol}
        evaluation: SolveConfig = dataclasses.replace(defaults.evaluation, **tolerances)
        return dataclasses.replace(defaults, evaluation=evaluation)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Whether budgets are kept, what they cost, and what prices buy."""
        count = self.count if self.count in numbers["rows"][0] else "NFE"
        found = Budgeted(numbers, self.steps, count, self.need, self.weights)
        return [
            kept_claim(found),
            *(as_good_claim(found, name) for name in self.weights),
            training_claim(found),
            *price_claims(found, PRICES),
        ]


class DigitsBudgets(AbstractBudgets):
    """Digits."""

    name = "budgets-digits"
    title = "Digits: budgets, prices and constant weights"
    num_seeds = 5
    task = "digits"
    need = 118.0
    weights: ClassVar = {"r2": (0.003, 0.03, 0.1, 1.0), "r3": (1e-4, 1e-3, 1e-2, 0.1)}


class TwoMoonsBudgets(AbstractBudgets):
    """Two moons, a flow in the plane."""

    name = "budgets-two-moons"
    title = "Two moons: budgets, prices and constant weights"
    num_seeds = 5
    task = "density2d"
    need = 56.0
    weights: ClassVar = {"r2": (0.003, 0.03, 0.1, 1.0), "r3": (1e-4, 1e-3, 1e-2, 0.1)}
    evaluation = LOOSE


class OscillatorsBudgets(AbstractBudgets):
    """Oscillators, a latent ODE."""

    name = "budgets-oscillators"
    title = "Oscillators: budgets, prices and constant weights"
    num_seeds = 5
    task = "oscillators"
    need = 154.0
    weights: ClassVar = {"r2": (0.003, 0.01, 0.1, 0.3), "r3": (1e-4, 3e-4, 1e-3, 3e-3)}
    evaluation = LOOSE


class MnistBudgets(AbstractBudgets):
    """MNIST, trained on a grid of four steps."""

    name = "budgets-mnist"
    title = "MNIST on a fixed grid: budgets, prices and constant weights"
    task = "mnist"
    need = 66.0
    weights: ClassVar = {"r2": (3e-5, 3e-4, 3e-3, 3e-2), "r3": (3e-6, 3e-5, 3e-4, 3e-3)}
    steps = 4

    def settings(self, scale: str) -> TrainConfig:
        """Those of Table 3, whose unregularized models have the evaluations of `need`."""
        return MnistTable().defaults(scale)


class MinibooneBudgets(AbstractBudgets):
    """MINIBOONE, a flow."""

    name = "budgets-miniboone"
    title = "MINIBOONE: budgets, prices and constant weights"
    task = "miniboone"
    need = 132.0
    weights: ClassVar = {"r2": (0.1, 0.3, 1.0, 10.0), "r3": (0.03, 0.1, 1.0, 10.0)}


class PhysionetBudgets(AbstractBudgets):
    """PhysioNet, a latent ODE."""

    name = "budgets-physionet"
    title = "PhysioNet: budgets, prices and constant weights"
    task = "physionet"
    need = 144.0
    weights: ClassVar = {"r2": (0.3, 1.0, 3.0, 10.0), "r3": (0.1, 1.0, 3.0, 10.0)}
