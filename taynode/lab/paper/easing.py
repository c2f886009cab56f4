"""Not in the paper: trained models made cheap, beside training on and training from scratch."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from ..config import RegularizerConfig, TrainConfig
from ..files import Json
from ..sweep.plan import Job, Measurements
from ..sweep.results import Result
from .arms import is_usable
from .budgets import BASES, Basis, SHARES
from .statistics import percent_fewer, spread
from .study import Claim, judged, Numbers
from .table_rows import column, FAILED, row_of_measured, row_ratios
from .tables import AbstractTable, COLUMNS
from .verdicts import ratio


REGULARIZER = "r3"
GIVEN, TRAINED_ON = "unregularized", "trained on"
EASED, SCRATCH = "eased to {:g}", "from scratch to {:g}"
# Up to so many times the loss of the control count as no more loss.
MOST_LOSS = 1.01
FOR_SHARE = {0.75: "three quarters", 0.5: "half"}


class Easing(AbstractTable):
    """Budgets for a trained model, with half of its steps once more, beside two controls.

    The first trains the same model on for as many steps without regularizer. The second trains a
    new model to the same budget in as many steps.
    """

    unit = "nats"
    columns: ClassVar[dict[str, str]] = {k: COLUMNS[k] for k in ("seconds", "loss", "NFE")}

    def __init__(self, basis: Basis):
        self.basis, self.task = basis, basis.task
        self.name = f"easing-{basis.name}"
        self.title = f"{basis.title}: trained models made cheap"
        self.arms = {
            GIVEN: RegularizerConfig(),
            **{
                SCRATCH.format(share): RegularizerConfig(REGULARIZER, budget=share * basis.need)
                for share in SHARES
            },
        }
        self.rows = tuple((arm, basis.steps) for arm in self.arms)
        self.smoke_rows = self.rows[:2]

    def defaults(self, scale: str) -> TrainConfig:
        """The settings of the study of budgets."""
        return self.basis.defaults(scale)

    def measurements(self, arm: RegularizerConfig, seed: int) -> tuple[str, ...]:
        """Unregularized models are trained on, and made cheap."""
        del seed
        return () if arm.is_controlled else tuple(MEASUREMENTS)

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """New models are trained for half of the epochs."""
        jobs = super().jobs(scale, seeds)
        return [
            job
            if job.measurements
            else dataclasses.replace(
                job,
                config=dataclasses.replace(job.config, epochs=max(1, job.config.epochs // 2)),
            )
            for job in jobs
        ]

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """The rows of the runs, and a row for each model that was made of them."""
        numbers = super().numbers(results, scale)
        given = [x for x in results if x["measured"] and is_usable(x)]
        for name in (TRAINED_ON, *map(EASED.format, SHARES)):
            found = {x["config"]["seed"]: x["measured"][name] for x in given}
            numbers["rows"].append(row_of_measured(name, self.basis.steps, found))
        return numbers

    def claims(self, numbers: Numbers) -> list[Claim]:
        """What a budget costs, beside training on."""
        return [self._claim(numbers, share) for share in SHARES]

    def _claim(self, numbers: Numbers, share: float) -> Claim:
        steps = self.basis.steps
        eased, control, scratch = (
            (name.format(share), steps) for name in (EASED, TRAINED_ON, SCRATCH)
        )
        paid = row_ratios(numbers, "loss", eased, control)
        against = row_ratios(numbers, "loss", eased, scratch)
        saved = row_ratios(numbers, "NFE", eased, control)
        nfe = list(column(numbers, *eased, "NFE").values())
        words = "-"
        if paid:
            words = (
                f"loss {spread([100 * (x - 1) for x in paid])} % over that of training on, with "
                f"{spread(percent_fewer(saved))} % fewer evaluations ({spread(nfe)}; budget "
                f"{share * self.basis.need:g}); {spread(against) if against else '-'} of the loss "
                "of training from scratch"
            )
        return judged(
            f"A trained model is brought to {FOR_SHARE[share]} of the evaluations at no more loss",
            "",
            words,
            ratio("loss over that of training on", paid, at_most=MOST_LOSS),
            rule=f"at most {MOST_LOSS:g} times the loss of training on",
            is_ours=True,
        )


def _measure(directory: Path, share: float | None) -> Json:
    """Loss and evaluations on test data of what a model becomes with half of its steps once more.

    **Arguments:**

    - `directory`: of the run.
    - `share`: the budget as a share of what the task needs; without it, the model is trained on.
    """
    from ..training.eased import evaluator_of, tested
    from ..training.easing import ease_run, EaseConfig, train_on
    from ..training.failures import TrainingFailed
    from ..training.loading import load

    run = load(directory)
    config = EaseConfig(regularizer=REGULARIZER)
    if share is None:
        return tested(run, evaluator_of(run), train_on(run, config))
    config = dataclasses.replace(config, budget=share * NEEDS[run.config.task])
    try:
        front = ease_run(run, config, directory / f"eased-{share:g}")
    except TrainingFailed as failure:
        return {FAILED: str(failure)}
    # Without a refit, the given model was cheap already.
    return tested(run, evaluator_of(run), front.points[-1])


MEASUREMENTS: Measurements = {
    TRAINED_ON: functools.partial(_measure, share=None),
    **{EASED.format(share): functools.partial(_measure, share=share) for share in SHARES},
}


STUDIES = {study.name: study for study in map(Easing, BASES.values())}
NEEDS = {basis.task: basis.need for basis in BASES.values()}
