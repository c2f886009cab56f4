"""Figure 12: mean square error against evaluations, on PhysioNet."""

from collections.abc import Sequence

from ..sweep.plan import Job
from ..sweep.results import Result
from . import r2_sweep
from .arms import arms_of, paired
from .chart import Chart, Panel
from .fronts import front_of, REMARK, SPLITS, WeightFront
from .study import AbstractStudy, Claim, judged, Numbers


EXTRA = 0.05


class MeanSquareError(AbstractStudy):
    """R_2 of many weights."""

    name = "fig12-mse"
    title = "PhysioNet: mean square error against evaluations"
    remarks = (REMARK,)

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """R_2 of many weights."""
        return r2_sweep.jobs("physionet", scale, seeds)

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """Evaluations and errors."""
        arms, name = paired(arms_of(results)), r2_sweep.evaluation_at("physionet", scale)
        return {
            kind: {
                split: front_of(arms, loss=f"{split}_{kind}", evaluation=name)
                for split in ("train", "test")
            }
            for kind in ("mse", "loss")
        }

    def chart(self, numbers: Numbers) -> Chart:
        """Both errors over evaluations."""
        marks = [
            mark
            for i, (split, front) in enumerate(numbers["mse"].items())
            for mark in WeightFront(**front).marks(f"{SPLITS[split]} data", i + 1)
        ]
        return Chart(
            [Panel(marks, x="NFE per test patient", y="increase of the mean square error, %")]
        )

    def claims(self, numbers: Numbers) -> list[Claim]:
        """The mean square error has the same trade-off as the loss."""
        found = {
            kind: WeightFront(**fronts["train"]).within(EXTRA) for kind, fronts in numbers.items()
        }
        return [
            judged(
                "The trade-off is much the same for the mean square error as for the loss",
                "similar curves",
                "saved, and its price, with the best weight on the other seeds for at most "
                f"{EXTRA:.0%} on training data: mean square error {found['mse'].in_words()}, loss "
                f"{found['loss'].in_words()}. The noise of the likelihood is fixed and small, so "
                "this loss is nearly the error, scaled",
                found["mse"].like(found["loss"], "difference of the shares saved"),
                rule="what is saved differs by at most 10 percentage points",
            )
        ]
