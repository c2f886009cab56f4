"""Figure 5: loss against evaluations, on three tasks."""

from collections.abc import Sequence

from ..sweep.plan import Job
from ..sweep.results import Result
from . import mnist_sweep, r2_sweep
from .arms import arms_of
from .chart import Chart, Line, Panel
from .fronts import front_of, REMARK, SPLITS, WeightFront
from .statistics import mean
from .study import AbstractStudy, Claim, judged, Numbers
from .verdicts import ratio


TITLES = {
    "mnist": "MNIST",
    "physionet": "PhysioNet",
    "miniboone": "MINIBOONE",
}


class Pareto(AbstractStudy):
    """R_2 with many weights on MNIST, PhysioNet and MINIBOONE."""

    name = "fig5-pareto"
    title = "Loss against evaluations, for many weights of R_2"
    remarks = (REMARK,)

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """The sweep on MNIST, and one for each of the other tasks."""
        jobs = mnist_sweep.jobs(scale, seeds, orders=(2,))
        return jobs + [
            job for task in r2_sweep.WEIGHTS for job in r2_sweep.jobs(task, scale, seeds)
        ]

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """Evaluations, and the loss on training and on test data."""
        # All tasks at the tolerance of the paper.
        on_mnist = None if scale == "smoke" else mnist_sweep.EVALUATIONS[-1].name
        evaluations = {
            "mnist": on_mnist,
            **{task: r2_sweep.evaluation_at(task, scale) for task in r2_sweep.WEIGHTS},
        }
        out = {}
        for task, name in evaluations.items():
            arms = arms_of([x for x in results if x["config"]["task"] == task])
            out[task] = {
                split: front_of(arms, loss=f"{split}_loss", evaluation=name)
                for split in ("train", "test")
            }
        return out

    def chart(self, numbers: Numbers) -> Chart:
        """A panel for each task."""
        panels = []
        for task, fronts in numbers.items():
            half = mean(WeightFront(**fronts["train"]).nfe[0].values()) / 2
            marks = [Line([half, half], [0, 5], "half of the evaluations, 5 %", -1)]
            for i, (split, front) in enumerate(fronts.items()):
                marks += WeightFront(**front).marks(f"{SPLITS[split]} loss", i + 1)
            panels.append(
                Panel(marks, TITLES[task], "NFE per test sample", "increase of the loss, %")
            )
        return Chart(panels)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """The evaluations that a little loss saves."""
        claims = []
        for task, fronts in numbers.items():
            words = [
                f"{extra:.0%} {SPLITS[split]} loss: {WeightFront(**front).within(extra).in_words()}"
                for split, front in fronts.items()
                for extra in (0.01, 0.05)
            ]
            saving = WeightFront(**fronts["train"]).within(0.05)
            claims.append(
                judged(
                    f"{TITLES[task]}: evaluations can be halved before the loss suffers",
                    "at least 2 times, in the conclusions",
                    "saved, and its price, with the best weight on the other seeds for at most "
                    f"{'; '.join(words)}",
                    ratio("evaluations with over without", saving.nfe.values(), at_most=0.5),
                    rule="at least half is saved, by a weight that costs at most 5 % of training "
                    "loss on the other seeds",
                )
            )
        return claims
