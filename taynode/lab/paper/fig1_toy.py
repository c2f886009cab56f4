"""Figure 1: a flow that maps z to z + z^3, without and with R_3."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..config import RegularizerConfig, SolveConfig
from ..sweep.plan import EvaluationConfig, Job
from ..sweep.results import Result
from .arms import arms_of, defaults_of, first_measured, jobs_of, paired
from .chart import Chart, Line, Panel
from .statistics import percent_fewer, quotients, rounded, spread
from .study import AbstractStudy, Claim, judged, Numbers
from .verdicts import ratio


ARMS = {"none": RegularizerConfig(), "r3": RegularizerConfig("r3", 1e-2)}
# The task has an evaluation with a solver of order 3.
FIFTH_ORDER = EvaluationConfig("dopri5", SolveConfig(rtol=1e-6, atol=1e-6))
PATHS = "toy-paths"
TITLES = {"none": "unregularized", "r3": "third derivative regularized"}


class Toy(AbstractStudy):
    """Trajectories with the solver's steps, and the third derivative as color."""

    name = "fig1-toy"
    title = "The same map, learned without and with regularization"
    num_seeds = 5

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Both arms, for all seeds."""
        config, measurements = defaults_of("toy", scale), lambda *_: (PATHS,)
        return jobs_of(config, ARMS.values(), seeds, (FIFTH_ORDER,), measurements)

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """Errors and evaluations of both arms, and the paths of the first seed."""
        del scale
        return {
            name: {
                "mse": arm.listed("test_loss"),
                "nfe": arm.listed("test_nfe"),
                "nfe_dopri5": arm.listed("test_nfe", "dopri5"),
                "r3": arm.listed("r3"),
                "paths": first_measured(arm, PATHS),
            }
            for name, arm in zip(ARMS, paired(arms_of(results)), strict=True)
        }

    def chart(self, numbers: Numbers) -> Chart:
        """Two panels with common axes and colors."""
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
                marks.append(Line(steps, at, joined=False, size=1.6))
            title = f"{TITLES[name]}\nNFE {spread(numbers[name]['nfe'])}"
            panels.append(Panel(marks, title, "time", "" if panels else "z"))
        label = "size of the third derivative"
        return Chart(panels, share_y=True, values=label, low=float(low), high=float(high))

    def claims(self, numbers: Numbers) -> list[Claim]:
        """The same fit with fewer evaluations."""
        plain, regular = numbers["none"], numbers["r3"]

        def fewer(solver: str, name: str) -> Claim:
            part = quotients(regular[name], plain[name])
            return judged(
                f"It needs fewer evaluations, by a solver of order {solver}",
                "seen in the figure",
                f"{spread(plain[name])} and {spread(regular[name])}: "
                f"{spread(percent_fewer(part))} % fewer",
                ratio("evaluations with over without", part, at_most=0.9),
                rule="at least 10 % fewer",
            )

        return [
            judged(
                "Regularizing the third derivative fits the same map",
                "seen in the figure",
                f"mean square error {spread(plain['mse'])} and {spread(regular['mse'])}",
                ratio(
                    "error with over without",
                    quotients(regular["mse"], plain["mse"]),
                    at_most=2.0,
                ),
                rule="at most twice the error",
            ),
            fewer("3 (Bosh3)", "nfe"),
            fewer("5 (Dopri5)", "nfe_dopri5"),
        ]


def paths_of(directory: Path) -> Numbers:
    """The paths of a run, with the solver's steps and third derivatives."""
    from ..report.samples import read_samples

    arrays = read_samples(directory)
    paths = {
        "times": arrays["path_times"].tolist(),
        "states": arrays["path_states"][..., 0].tolist(),
        "derivative": arrays["path_derivative"][2].tolist(),
        "steps": [row[np.isfinite(row)].tolist() for row in arrays["step_times"]],
    }
    return rounded(paths)
