"""Figure 4: latent paths of patients, without and with regularization."""

import statistics
from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import Job
from . import r2_sweep
from .arms import arms_of, first_measured
from .chart import Chart, Line, Panel
from .study import AbstractStudy, Claim, verdict


TITLES = {"none": "unregularized", "r2": "second derivative regularized"}


class LatentPaths(AbstractStudy):
    """PhysioNet, in the two directions in which the paths extend most."""

    name: ClassVar[str] = "fig4-latent"
    title: ClassVar[str] = "Latent paths of patients are straighter with regularization"

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """The runs of the sweep that draw their paths."""
        every = r2_sweep.jobs("physionet", scale, seeds)
        return [job for job in every if r2_sweep.PATHS in job.measurements]

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """The paths, and evaluations and errors of the runs."""
        del scale
        out = {}
        for name, arm in zip(TITLES, arms_of(results), strict=True):
            paths = first_measured(arm, r2_sweep.PATHS)
            out[name] = {
                "paths": paths,
                "nfe": arm.listed("test_nfe")[0],
                "mse": arm.listed("test_mse")[0],
                "bends": _bends(paths),
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
                marks.append(Line(*at, color=i, joined=False))
            title = f"{TITLES[name]}\nNFE per test patient {told['nfe']:.1f}"
            panels.append(Panel(marks, title, "first direction", "second direction"))
        return Chart(panels)

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """They are simpler."""
        plain, regular = numbers["none"], numbers["r2"]
        return [
            Claim(
                "Regularized latent paths are simpler",
                "seen in the figure",
                f"length over distance {plain['bends']:.2f} and {regular['bends']:.2f}; NFE "
                f"{plain['nfe']:.1f} and {regular['nfe']:.1f}, mean square error "
                f"{plain['mse']:.2e} and {regular['mse']:.2e}",
                verdict(regular["bends"] < plain["bends"] and regular["nfe"] < plain["nfe"]),
            )
        ]


def _bends(paths: dict[str, Any]) -> float:
    """The median over paths of length over distance of the ends, in eight directions."""
    import numpy as np

    ratios = []
    for states in np.array(paths["states"]):
        length = np.linalg.norm(np.diff(states, axis=0), axis=1).sum()
        ratios.append(length / max(np.linalg.norm(states[-1] - states[0]), 1e-12))
    return statistics.median(map(float, ratios))
