"""Not in the paper: trained models made cheap, beside training on and training from scratch."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from ..config import RegularizerConfig, TrainConfig
from ..files import Json
from ..sweep.plan import Measurements
from ..sweep.results import Result
from .arms import is_usable
from .budgets import BASES, Basis, SHARES
from .statistics import percent_more, spread
from .study import Claim, judged, Numbers
from .table_rows import column, FAILED, row_of_measured, row_ratios
from .tables import AbstractTable, COLUMNS
from .verdicts import ratio, reached


REGULARIZER = "r3"
GIVEN, TRAINED_ON = "unregularized", "trained on"
EASED, SCRATCH = "eased to {:g}", "from scratch to {:g}"
# Up to so many times the loss of the control count as no more loss, and up to so many times the
# budget as kept.
MOST_LOSS, MOST_OVER = 1.01, 1.05
FOR_SHARE = {0.75: "three quarters", 0.5: "half"}


class Easing(AbstractTable):
    """Budgets for a trained model, with half of its steps once more, beside two controls.

    The first trains the same model on for as many steps without regularizer. The second trains a
    new model to the same budget in as many steps. Budgets are shares of what the given model needs.
    """

    unit = "nats"
    columns: ClassVar[dict[str, str]] = {k: COLUMNS[k] for k in ("seconds", "loss", "NFE")}
    arms: ClassVar[dict[str, RegularizerConfig]] = {GIVEN: RegularizerConfig()}

    def __init__(self, basis: Basis):
        self.basis, self.task, self.num_seeds = basis, basis.task, basis.num_seeds
        self.name = f"easing-{basis.name}"
        self.title = f"{basis.title}: trained models made cheap"
        self.rows = self.smoke_rows = ((GIVEN, basis.steps),)

    def defaults(self, scale: str) -> TrainConfig:
        """The settings of the study of budgets."""
        return self.basis.defaults(scale)

    def measurements(self, arm: RegularizerConfig, seed: int) -> tuple[str, ...]:
        """What each model is made into."""
        del arm, seed
        return tuple(MEASUREMENTS)

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """The rows of the runs, and a row for each model that was made of them."""
        numbers = super().numbers(results, scale)
        given = [x for x in results if x["measured"] and is_usable(x)]
        for name in MEASUREMENTS:
            found = {x["config"]["seed"]: x["measured"][name] for x in given}
            numbers["rows"].append(row_of_measured(name, self.basis.steps, found))
        return numbers

    def claims(self, numbers: Numbers) -> list[Claim]:
        """What a budget costs, beside training on."""
        return [self._claim(numbers, share) for share in SHARES]

    def _claim(self, numbers: Numbers, share: float) -> Claim:
        steps = self.basis.steps
        given, eased, control, scratch = (
            (name.format(share), steps) for name in (GIVEN, EASED, TRAINED_ON, SCRATCH)
        )
        paid = row_ratios(numbers, "loss", eased, control)
        against = row_ratios(numbers, "loss", eased, scratch)
        left = row_ratios(numbers, "NFE", eased, given)
        saved = row_ratios(numbers, "NFE", eased, control)
        seeds = list(column(numbers, *given, "NFE"))
        done = column(numbers, *eased, "NFE")
        words = "-"
        if paid:
            words = (
                f"{spread(left)} of the evaluations ({spread(list(done.values()))}) for "
                f"{spread(percent_more(paid))} % more loss than training on, which has "
                f"{spread([1 / x for x in saved])} times as many; "
                f"{spread(against) if against else '-'} of the loss of training from scratch"
            )
        if failed := len(seeds) - len(done):
            words += f"; {failed} of {len(seeds)} failed"
        return judged(
            f"A trained model is brought to {FOR_SHARE[share]} of the evaluations at no more loss",
            "",
            words,
            ratio("loss over that of training on", paid, at_most=MOST_LOSS),
            ratio("evaluations over the given ones", left, at_most=share * MOST_OVER),
            reached("an eased model", [seed in done for seed in seeds]),
            rule=f"at most {MOST_LOSS:g} times the loss of training on, and at most {share:g} of "
            "the given evaluations, up to 5 %",
            is_ours=True,
        )


def _measure(directory: Path, recipe: str, share: float | None) -> Json:
    """Loss and evaluations on test data of what becomes of a model, or of a new one.

    **Arguments:**

    - `directory`: of the run.
    - `recipe`: one of `TRAINED_ON`, `EASED` and `SCRATCH`.
    - `share`: the budget as a share of what the given model needs.
    """
    from ..training.eased import evaluator_of, tested
    from ..training.easing import ease_run, EaseConfig, train_on
    from ..training.failures import TrainingFailed
    from ..training.loading import load
    from ..training.loop import train
    from ..training.records import RunDirectory

    run = load(directory)
    config = EaseConfig(regularizer=REGULARIZER, seed=run.config.seed)
    if share is None:
        return tested(run, evaluator_of(run), train_on(run, config))
    budget = share * RunDirectory(directory).rows()[-1]["test_nfe"]
    try:
        if recipe == SCRATCH:
            settings = dataclasses.replace(
                run.config,
                epochs=max(1, run.config.epochs // 2),
                regularizer=RegularizerConfig(REGULARIZER, budget=budget),
            )
            row = train(settings, run.task, directory / f"scratch-{share:g}", resume=True).rows()[
                -1
            ]
            return {name: row[name] for name in ("test_loss", "test_nfe", "test_num_failed")}
        front = ease_run(
            run, dataclasses.replace(config, budget=budget), directory / f"eased-{share:g}"
        )
    except TrainingFailed as failure:
        return {FAILED: str(failure)}
    # Without a refit, the given model was cheap already.
    return tested(run, evaluator_of(run), front.points[-1])


MEASUREMENTS: Measurements = {
    recipe.format(share): functools.partial(_measure, recipe=recipe, share=share)
    for recipe, shares in ((TRAINED_ON, (None,)), (EASED, SHARES), (SCRATCH, SHARES))
    for share in shares
}
STUDIES = {study.name: study for study in map(Easing, BASES.values())}
