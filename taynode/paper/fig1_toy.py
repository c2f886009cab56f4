"""Figure 1: a flow that maps z to z + z^3, as it comes out and with R_3."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..sweep.plan import EvaluationConfig, Job
from ..training.config import RegularizerConfig, SolveConfig
from .chart import Chart, Line, Panel
from .statistics import of_group, spread
from .study import AbstractStudy, Claim, verdict


ARMS = {"none": RegularizerConfig(), "r3": RegularizerConfig("r3", 1e-2)}
# The task itself is evaluated with a solver of order 3.
FIFTH_ORDER = EvaluationConfig("dopri5", SolveConfig(rtol=1e-6, atol=1e-6))
PATHS = "taynode.paper.fig1_toy:paths_of"
TITLES = {"none": "unregularized", "r3": "third derivative regularized"}


class Toy(AbstractStudy):
    """Trajectories with the solver's steps, and the third derivative as color."""

    name: ClassVar[str] = "fig1-toy"
    title: ClassVar[str] = "The same map, learned without and with regularization"

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Both arms, for all seeds."""
        from ..tasks import find_task

        defaults = find_task("toy").defaults(scale)
        return [
            Job(
                dataclasses.replace(defaults, regularizer=arm, seed=seed),
                (FIFTH_ORDER,),
                (PATHS,) if seed == seeds[0] else (),
            )
            for arm in ARMS.values()
            for seed in seeds
        ]

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """Errors and evaluations of both arms, and the paths of the first seed."""
        del scale
        arms = {name: of_group(results, regularizer=name) for name in ARMS}
        return {
            name: {
                "mse": [result["row"]["test_loss"] for result in arm],
                "nfe": [result["row"]["test_nfe"] for result in arm],
                "nfe_dopri5": [result["evaluations"]["dopri5"]["test_nfe"] for result in arm],
                "r3": [result["row"]["r3"] for result in arm],
                "paths": arm[0]["measured"][PATHS],
            }
            for name, arm in arms.items()
        }

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """Two panels with common axes and colors."""
        import numpy as np

        every = np.concatenate([np.ravel(numbers[name]["paths"]["derivative"]) for name in ARMS])
        low, high = np.quantile(every[every > 0], [0.05, 0.995])
        panels = []
        for name in ARMS:
            paths = numbers[name]["paths"]
            times, marks = paths["times"], []
            for states, derivative, steps in zip(
                paths["states"], paths["derivative"], paths["steps"], strict=True
            ):
                marks.append(Line(times, states, values=derivative))
                at = np.interp(steps, times, states).tolist()
                marks.append(Line(steps, at, joined=False))
            title = f"{TITLES[name]}\nNFE {spread(numbers[name]['nfe'])}"
            panels.append(Panel(marks, title, "time", "" if panels else "z"))
        label = "size of the third derivative"
        return Chart(panels, share_y=True, values=label, low=float(low), high=float(high))

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """The same fit, in fewer evaluations."""
        plain, regular = numbers["none"], numbers["r3"]
        mean = lambda values: sum(values) / len(values)
        fit = mean(regular["mse"]) / mean(plain["mse"])

        def fewer(solver: str, name: str) -> Claim:
            saved = 1 - mean(regular[name]) / mean(plain[name])
            return Claim(
                f"It needs fewer evaluations, by a solver of order {solver}",
                "no number",
                f"{spread(plain[name])} and {spread(regular[name])}: {saved:.0%} fewer",
                verdict(saved > 0.1),
            )

        return [
            Claim(
                "Regularizing the third derivative fits the same map",
                "no number",
                f"mean square error {spread(plain['mse'])} and {spread(regular['mse'])}",
                verdict(fit <= 2),
            ),
            fewer("3 (Bosh3)", "nfe"),
            fewer("5 (Dopri5)", "nfe_dopri5"),
        ]


def paths_of(directory: Path) -> dict[str, Any]:
    """The paths that a run has drawn, with steps and third derivatives."""
    import numpy as np

    from ..report.samples import read_samples

    arrays = read_samples(directory)
    steps = [row[np.isfinite(row)].tolist() for row in arrays["step_times"]]
    return {
        "times": arrays["path_times"].tolist(),
        "states": arrays["path_states"][..., 0].tolist(),
        "derivative": arrays["path_derivative"][2].tolist(),
        "steps": steps,
    }
