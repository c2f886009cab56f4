"""Figure 4: latent paths of patients, without and with regularization."""

from collections.abc import Sequence

import numpy as np

from ..config import RegularizerConfig
from ..sweep.plan import Job
from ..sweep.results import Result
from . import r2_sweep
from .arms import arms_of, first_measured, paired
from .chart import Chart, Line, Panel
from .statistics import percent_more, quotients, spread
from .study import AbstractStudy, Claim, judged, Numbers
from .verdicts import ratio


TITLES = {"none": "unregularized", "r2": "second derivative regularized"}


class LatentPaths(AbstractStudy):
    """PhysioNet, in the two directions in which the paths extend most."""

    name = "fig4-latent"
    title = "Latent paths of patients are straighter with regularization"
    remarks = (
        f"Weight {r2_sweep.DRAWN:g} is one of five that were run, and is the same for all seeds; "
        "the study physionet chooses one of the five on other seeds",
    )

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """The unregularized runs of the sweep, and those of one weight."""
        every = r2_sweep.jobs("physionet", scale, seeds)
        drawn = RegularizerConfig(), r2_sweep.regularized("physionet", r2_sweep.DRAWN)
        return [job for job in every if job.config.regularizer in drawn]

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """The paths of the first seed, and evaluations and losses of all."""
        tight = r2_sweep.evaluation_at("physionet", scale)
        out = {}
        for name, arm in zip(TITLES, paired(arms_of(results)), strict=True):
            paths = first_measured(arm, r2_sweep.PATHS)
            out[name] = {
                "paths": paths,
                "nfe": arm.listed("test_nfe", tight),
                "loss": arm.listed("test_loss"),
                "bends": paths["bends"],
            }
        return out

    def chart(self, numbers: Numbers) -> Chart:
        """A panel an arm, with the solver's steps as dots."""
        panels = []
        for i, (name, arm) in enumerate(sorted(numbers.items())):
            paths, marks = arm["paths"], []
            for states, steps in zip(paths["states"], paths["steps"], strict=True):
                # Each model has principal directions of its own: the states of two models have
                # nothing in common.
                x, y = np.array(states).T[:2]
                marks.append(Line(x.tolist(), y.tolist(), color=i, dots=False, width=1.0))
                at = [np.interp(steps, paths["times"], values).tolist() for values in (x, y)]
                marks.append(Line(*at, color=i, joined=False, size=2.5))
            title = f"{TITLES[name]}\nNFE per test patient {spread(arm['nfe'])}"
            panels.append(Panel(marks, title, "first direction", "second direction"))
        return Chart(panels)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Regularized paths take fewer evaluations, for little loss."""
        plain, regular = numbers["none"], numbers["r2"]
        nfe, loss = (quotients(regular[name], plain[name]) for name in ("nfe", "loss"))
        return [
            judged(
                "R_2 lowers the evaluations to a third, for 8 % more loss",
                "281 to 90, 0.32, for 8 %",
                f"weight {r2_sweep.DRAWN:g}: to {spread(nfe)} of them, for "
                f"{spread(percent_more(loss))} % more test loss; length over distance of the paths "
                f"that are drawn {plain['bends']:.2f} and {regular['bends']:.2f}",
                ratio("evaluations with over without", nfe, at_most=0.35),
                ratio("loss with over without", loss, at_most=1.08),
                rule="at most 0.35 of them, for at most 8 %",
            ),
        ]
