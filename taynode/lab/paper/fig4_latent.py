"""Figure 4: latent paths of patients, without and with regularization."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..config import RegularizerConfig
from ..sweep.plan import Job
from . import r2_sweep
from .arms import arms_of, first_measured, paired
from .chart import Chart, Line, Panel
from .statistics import percent_more, quotients, spread
from .study import AbstractStudy, Claim, judged
from .verdicts import ratio


TITLES = {"none": "unregularized", "r2": "second derivative regularized"}


class LatentPaths(AbstractStudy):
    """PhysioNet, in the two directions in which the paths extend most."""

    name: ClassVar[str] = "fig4-latent"
    title: ClassVar[str] = "Latent paths of patients are straighter with regularization"
    remarks: ClassVar[tuple[str, ...]] = (
        f"Weight {r2_sweep.DRAWN:g} is one of five that were run, and is the same for all seeds; "
        "the study physionet chooses one of the five on other seeds",
    )

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Of the sweep, the runs that are not regularized, and those of one weight."""
        every = r2_sweep.jobs("physionet", scale, seeds)
        drawn = RegularizerConfig(), r2_sweep.regularized("physionet", r2_sweep.DRAWN)
        return [job for job in every if job.config.regularizer in drawn]

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
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

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """A panel an arm, with the solver's steps as dots."""
        import numpy as np

        panels = []
        for i, (name, told) in enumerate(sorted(numbers.items())):
            paths, marks = told["paths"], []
            for states, steps in zip(paths["states"], paths["steps"], strict=True):
                # In the directions of its own largest extent: the two models' states have nothing
                # to do with each other.
                x, y = np.array(states).T[:2]
                marks.append(Line(x.tolist(), y.tolist(), color=i, dots=False, width=1.0))
                at = [np.interp(steps, paths["times"], values).tolist() for values in (x, y)]
                marks.append(Line(*at, color=i, joined=False, size=2.5))
            title = f"{TITLES[name]}\nNFE per test patient {spread(told['nfe'])}"
            panels.append(Panel(marks, title, "first direction", "second direction"))
        return Chart(panels)

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """They are cheaper, for little loss."""
        plain, regular = numbers["none"], numbers["r2"]
        nfe, loss = (quotients(regular[name], plain[name]) for name in ("nfe", "loss"))
        paid = percent_more(regular["loss"], plain["loss"])
        return [
            judged(
                "R_2 lowers the evaluations to a third, for 8 % more loss",
                "281 to 90, 0.32, for 8 %",
                f"weight {r2_sweep.DRAWN:g}: to {spread(nfe)} of them, for {spread(paid)} % more "
                f"test loss; length over distance of the paths that are drawn {plain['bends']:.2f} "
                f"and {regular['bends']:.2f}",
                ratio("evaluations with over without", nfe, at_most=0.35),
                ratio("loss with over without", loss, at_most=1.08),
                rule="at most 0.35 of them, for at most 8 %",
            ),
        ]
