"""Not in the paper: three of its tasks trained to the end, with budgets instead of weights."""

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from ..config import RegularizerConfig, SolveConfig, TrainConfig
from ..sweep.plan import EvaluationConfig
from ..sweep.results import Result
from . import mnist_sweep
from .arms import defaults_of
from .chart import Chart, Line, Panel
from .r2_sweep import LOOSE, TIGHT
from .selection import chosen_on_other_seeds
from .statistics import mean, percent_more, spread
from .study import Claim, judged, Numbers
from .table_rows import column, count_in
from .tables import AbstractTable, COLUMNS, TRAINING_NFE
from .verdicts import ratio


GIVEN, RNODE = "unregularized", "RNODE"
REGULARIZERS = {"R_2": "r2", "R_3": "r3"}


class Goal(NamedTuple):
    """Evaluations and loss relative to those of the unregularized models.

    - `statement`: the goal in words.
    - `share`: the largest share of the evaluations.
    - `more`: the largest increase of the test loss, as a share of it.
    - `paper`: the number of the paper; empty if the goal is not in the paper.
    """

    statement: str
    share: float
    more: float
    paper: str = ""


HALF = Goal("half of the evaluations for at most 1 % more loss", 0.5, 0.01)


class AbstractAtScale(AbstractTable):
    """Unregularized, RNODE, and R_2 and R_3 with several budgets, to the end of training.

    - `budgets`: evaluations per test sample at the tolerance of the evaluation.
    - `goals`: what a regularizer should reach.
    - `grids`: the numbers of steps in training; `None` for adaptive steps.
    """

    budgets: ClassVar[Sequence[float]]
    goals: ClassVar[Sequence[Goal]]
    grids: ClassVar[Sequence[int | None]] = (None,)
    num_seeds = 2
    needs = (TRAINING_NFE,)
    columns: ClassVar[dict[str, str]] = {
        **COLUMNS,
        "training loss": "train_loss",
        "training NFE": TRAINING_NFE,
    }
    remarks = ("Regularizers are chosen on the other seeds, among all budgets",)

    def __init_subclass__(cls, **options: object):
        super().__init_subclass__(**options)
        cls.arms = {
            GIVEN: RegularizerConfig(),
            # The weight of its authors for images.
            RNODE: RegularizerConfig("rnode", 0.01),
            **{
                budgeted(shown, budget): RegularizerConfig(name, budget=budget)
                for budget in cls.budgets
                for shown, name in REGULARIZERS.items()
            },
        }
        cls.rows = tuple((arm, steps) for arm in cls.arms for steps in cls.grids)
        cls.smoke_rows = (cls.rows[0], cls.rows[-1])

    def more_columns(self, results: Sequence[Result]) -> Numbers:
        """The evaluations of test samples during training."""
        return {
            "course": [
                {name: [row[name] for row in result["history"]] for name in ("epoch", "test_nfe")}
                for result in results
            ]
        }

    def chart(self, numbers: Numbers) -> Chart:
        """Evaluations during training, and losses against evaluations in the end."""
        count, steps = count_in(numbers), self.grids[0]
        courses, ends = [], []
        for i, row in enumerate(row for row in numbers["rows"] if row["steps"] == steps):
            for j, course in enumerate(row["course"]):
                label = "" if j else row["model"]
                courses.append(Line(course["epoch"], course["test_nfe"], label, i, dots=False))
            if row["loss"]:
                x, y = [mean(row[count])], [mean(row["loss"])]
                ends.append(Line(x, y, row["model"], i, joined=False))
        return Chart(
            [
                Panel(courses, x="epoch", y="NFE per test sample"),
                Panel(ends, x=f"{count} per test sample", y=f"test loss, {numbers['unit']}"),
            ],
            height=4.5,
        )

    def claims(self, numbers: Numbers) -> list[Claim]:
        """What R_2 and R_3 reach, with budgets that are chosen on the other seeds."""
        return [
            self._claim(numbers, regularizer, goal)
            for goal in self.goals
            for regularizer in REGULARIZERS
        ]

    def _claim(self, numbers: Numbers, regularizer: str, goal: Goal) -> Claim:
        reached = _Reached(numbers, self.grids[0], [budgeted(regularizer, b) for b in self.budgets])
        chosen = chosen_on_other_seeds(reached.seeds(), lambda seeds: reached.best(seeds, goal))
        known = {seed: arm for seed, arm in chosen.items() if seed in reached.ratios("loss", arm)}
        nfe, loss = (
            [reached.ratios(name, arm)[seed] for seed, arm in known.items()]
            for name in (reached.count, "loss")
        )
        arms = " or ".join(sorted(set(known.values()))) or "no other seeds to choose a budget on"
        return judged(
            f"{regularizer}: {goal.statement}",
            goal.paper,
            f"{spread(nfe)} of the evaluations for {spread(percent_more(loss))} % test loss "
            f"({arms})"
            if nfe
            else arms,
            ratio("evaluations with over without", nfe, at_most=goal.share),
            ratio("loss with over without", loss, at_most=1 + goal.more),
            rule=f"at most {goal.share:g} of them, for at most {goal.more:.1%} more test loss",
            is_ours=not goal.paper,
        )


class _Reached(NamedTuple):
    """Evaluations and losses of some rows, relative to the unregularized ones."""

    numbers: Numbers
    steps: int | None
    arms: list[str]

    @property
    def count(self) -> str:
        return count_in(self.numbers)

    def seeds(self) -> list[int]:
        return list(column(self.numbers, GIVEN, self.steps, "loss"))

    def ratios(self, name: str, arm: str) -> dict[int, float]:
        plain, regular = (column(self.numbers, x, self.steps, name) for x in (GIVEN, arm))
        return {seed: regular[seed] / plain[seed] for seed in regular.keys() & plain.keys()}

    def best(self, seeds: Sequence[int], goal: Goal) -> str:
        """The fewest evaluations within the loss of a goal, as means over some seeds."""

        def over_seeds(name: str, arm: str) -> float:
            found = self.ratios(name, arm)
            return mean(found[seed] for seed in seeds if seed in found)

        # Comparisons with NaN are false.
        within = [arm for arm in self.arms if over_seeds("loss", arm) <= 1 + goal.more]
        least = {arm: over_seeds(self.count, arm) for arm in within}
        known = {arm: nfe for arm, nfe in least.items() if math.isfinite(nfe)}
        return min(known, key=lambda arm: known[arm]) if known else GIVEN


def budgeted(regularizer: str, budget: float) -> str:
    """The name of a row."""
    return f"{regularizer}, budget {budget:g}"


class MnistAtScale(AbstractAtScale):
    """The paper's classifier on all images, on two steps of Dopri5, in single precision."""

    name = "at-scale-mnist"
    title = "MNIST to the end of training: a classifier on two steps"
    task = "mnist"
    unit = "nats"
    grids = (2,)
    budgets = (80.0, 60.0, 45.0)
    goals = (
        Goal("half of the evaluations for at most 5 % more loss", 0.5, 0.05, "at least 2 times"),
        HALF,
    )
    # The loss of the paper's model on training data, on two steps without regularization.
    trained_loss = 0.0239

    def defaults(self, scale: str) -> TrainConfig:
        """At `paper`, the optimizer and the epochs of the paper."""
        shared = mnist_sweep.config(scale)
        if scale != "paper":
            return shared
        return dataclasses.replace(shared, precision="float32", num_evaluations=16)

    def config_of(self, defaults: TrainConfig, arm: str, steps: int | None) -> TrainConfig:
        """The settings of a row; its grid is one of Dopri5, not of RK4."""
        training = SolveConfig(steps=steps)
        return dataclasses.replace(defaults, regularizer=self.arms[arm], training=training)

    def evaluations(self, scale: str, steps: int | None) -> tuple[EvaluationConfig, ...]:
        """Every solver of Figure 6, and the paper's tolerance."""
        del steps
        return () if scale == "smoke" else (*mnist_sweep.EVALUATIONS[:-1], TIGHT)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Also that the model fits as well as that of the paper."""
        found = column(numbers, GIVEN, self.grids[0], "training loss").values()
        fits = judged(
            "Without regularization, the training loss is that of the paper",
            f"{self.trained_loss:g}",
            spread(list(found)) if found else "-",
            ratio("loss over the paper's", [x / self.trained_loss for x in found], at_most=1.1),
            rule="at most 10 % more",
        )
        return [fits, *super().claims(numbers)]


class PhysionetAtScale(AbstractAtScale):
    """The paper's latent ODE on all patients."""

    name = "at-scale-physionet"
    title = "PhysioNet to the end of training: all patients"
    task = "physionet"
    unit = "nats per value"
    num_seeds = 3
    budgets = (100.0, 66.0, 50.0)
    beside = LOOSE
    goals = (
        Goal("a third of the evaluations for 8 % more loss", 0.35, 0.08, "281 to 90, 0.32"),
        HALF,
    )


class ImagesAtScale(AbstractAtScale):
    """The paper's flow on images of 14 x 14 pixels, for 2,000 steps."""

    name = "at-scale-images"
    title = "MNIST as a density, ten times as long: a flow"
    task = "mnist-flow"
    unit = "bits/dim"
    grids = (None, 8)
    budgets = (45.0, 36.0)
    goals = (
        Goal(
            "38 % fewer evaluations for 0.6 % more bits/dim",
            0.62,
            0.006,
            "149 to 92, for 0.6 % more bits/dim",
        ),
        HALF,
    )

    def defaults(self, scale: str) -> TrainConfig:
        """At `paper`, images and model of `laptop` and ten times its steps."""
        if scale != "paper":
            return defaults_of(self.task, scale)
        return dataclasses.replace(
            defaults_of(self.task, "laptop"),
            train_samples=None,
            batch_size=30,
            num_evaluations=10,
        )


STUDIES = {study.name: study for study in (MnistAtScale(), PhysionetAtScale(), ImagesAtScale())}
