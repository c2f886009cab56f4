"""Figure 9: trajectories and their local Taylor polynomials, without and with R_6."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..config import RegularizerConfig, SolveConfig
from ..sweep.plan import EvaluationConfig, Job
from ..sweep.results import Result
from .arms import arms_of, defaults_of, first_measured, jobs_of, paired
from .chart import Chart, Line, Panel
from .statistics import in_range, percent_fewer, quotients, rounded, spread
from .study import AbstractStudy, Claim, judged, Numbers
from .verdicts import ratio


ORDER = 6
ARMS = {"none": RegularizerConfig(), "r6": RegularizerConfig("r6", 1e-8)}
TITLES = {"none": "unregularized", "r6": "sixth derivative regularized"}
POLYNOMIALS = "taylor-polynomials"
FIFTH_ORDER = EvaluationConfig("dopri5", SolveConfig(rtol=1.4e-8, atol=1.4e-8), "float64", 200)
# A trajectory that goes far, and the indices of the times at which it is expanded.
START, NUM_TIMES, POINTS = 3.0, 201, (50, 100, 150)


class TaylorPolynomials(AbstractStudy):
    """The toy problem, and polynomials of order 6 at some points of a trajectory."""

    name = "fig9-taylor"
    title = "Regularized trajectories are nearly polynomials"
    num_seeds = 5

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Both arms, for all seeds."""
        config, measurements = defaults_of("toy", scale), lambda *_: (POLYNOMIALS,)
        return jobs_of(config, ARMS.values(), seeds, (FIFTH_ORDER,), measurements)

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """Fits and evaluations, and the trajectory and polynomials of the first seed."""
        del scale
        return {
            name: {
                "mse": arm.listed("test_loss"),
                "nfe": arm.listed("test_nfe", "dopri5"),
                "misfit": [_misfit(x) for x in arm.measured(POLYNOMIALS)],
                "drawn": first_measured(arm, POLYNOMIALS),
            }
            for name, arm in zip(ARMS, paired(arms_of(results)), strict=True)
        }

    def chart(self, numbers: Numbers) -> Chart:
        """The trajectory as a line, the polynomials over it."""
        panels = []
        for name in ARMS:
            drawn = numbers[name]["drawn"]
            times, states = drawn["times"], drawn["states"]
            marks = [Line(times, states, "trajectory", -1, width=4.0)]
            for i, piece in enumerate(drawn["pieces"]):
                label = "" if i else f"polynomial of order {ORDER}"
                marks.append(Line(times, piece["values"], label, 2, dots=False))
                marks.append(Line([piece["at"]], [piece["value"]], color=2, joined=False))
            margin = 0.1 * (max(states) - min(states))
            bounds = min(states) - margin, max(states) + margin
            title = f"{TITLES[name]}\nNFE {spread(numbers[name]['nfe'])}"
            panels.append(Panel(marks, title, "time", "" if panels else "z", y_range=bounds))
        return Chart(panels)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Polynomials fit better, and a solver of order 5 needs fewer evaluations."""
        plain, regular = (numbers[name] for name in ARMS)
        nfe, fit = (quotients(regular[name], plain[name]) for name in ("nfe", "mse"))
        fewer = spread(percent_fewer(nfe))
        misfits = [numbers[name]["misfit"] for name in ARMS]
        part = quotients(*misfits[::-1]) if len(misfits[0]) == len(misfits[1]) else []
        return [
            judged(
                "Without regularization, trajectories are poorly approximated by local Taylor "
                f"polynomials of order {ORDER}; with R_{ORDER}, better",
                "seen in the figure",
                "distance from the trajectory, on average over time, in percent of its range: "
                f"{' and '.join(in_range([100 * x for x in each]) for each in misfits)}",
                ratio("distance with over without", part, at_most=0.5),
                rule="at most half of it",
            ),
            judged(
                "With R_6, a solver of order 5 needs fewer evaluations for the same fit",
                "92 to 68, 26 % fewer",
                f"{spread(plain['nfe'])} to {spread(regular['nfe'])}, {fewer} % fewer; mean square "
                f"error {spread(plain['mse'])} and {spread(regular['mse'])}",
                ratio("evaluations with over without", nfe, at_most=0.9),
                ratio("error with over without", fit, at_most=2.0),
                rule="at least 10 % fewer, for at most twice the error",
            ),
        ]


def _misfit(drawn: Numbers) -> float:
    """The mean distance of the polynomials from the trajectory, as a share of its range."""
    states = np.asarray(drawn["states"])
    distances = [np.abs(np.asarray(piece["values"]) - states) for piece in drawn["pieces"]]
    return float(np.mean(distances) / np.ptp(states))


def expansions_of(directory: Path) -> Numbers:
    """A trajectory of a run's model, and Taylor polynomials at some of its points."""
    import diffrax as dfx
    import jax.numpy as jnp

    from ...models import Solve
    from ...taylor import taylor_coefficients
    from ..training.loading import load

    run = load(directory, precision="float64")
    field = run.model.vector_field
    times = jnp.linspace(0.0, 1.0, NUM_TIMES)
    exact = Solve(stepsize_controller=dfx.PIDController(rtol=1e-10, atol=1e-10))
    states = exact(field, jnp.array([START]), saveat=dfx.SaveAt(ts=times)).ys
    pieces = []
    for i in POINTS:
        terms = taylor_coefficients(field, times[i], states[i], order=ORDER)
        values = sum(term[0] * (times - times[i]) ** k for k, term in enumerate(terms))
        pieces.append(
            {
                "at": float(times[i]),
                "value": float(states[i, 0]),
                "values": np.asarray(values).tolist(),
            }
        )
    return rounded({"times": times.tolist(), "states": states[:, 0].tolist(), "pieces": pieces})
