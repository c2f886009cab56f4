"""Not in the paper: flow matching with a penalty at its points."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from ..config import RegularizerConfig
from ..files import Json
from ..sweep.plan import Job
from ..sweep.results import Result
from .arms import is_usable
from .flow_recipes import EASED, NAMES, RECIPES, REFLOW
from .sampling import SAMPLING, SOLVERS, STEPS
from .statistics import mean, percent_fewer, spread
from .study import Claim, judged, Numbers
from .table_rows import column, FAILED, ratios, row_of_measured
from .tables import AbstractTable, COLUMNS
from .verdicts import number, ratio, reached


# The weight that was found best on the checkerboard before any run of these studies.
CHOSEN = "R_2, weight 0.1"
GIVEN = "unregularized"
# The energy distance of good samples is nearly zero, so differences are judged by this share of
# that of the given model with four Euler steps.
SAME = 0.1


class MatchingTable(AbstractTable):
    """Samples by adaptive steps and by few steps, without and with penalties."""

    unit = "mean square"
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        GIVEN: RegularizerConfig(),
        **{f"R_2, weight {w:g}": RegularizerConfig("r2", w) for w in (0.03, 0.1, 0.3)},
        **{f"R_3, weight {w:g}": RegularizerConfig("r3", w) for w in (0.001, 0.01)},
        "curvature, weight 0.1": RegularizerConfig("curvature", 0.1),
    }
    rows = tuple((arm, None) for arm in arms)
    smoke_rows = ((GIVEN, None), (CHOSEN, None))
    columns: ClassVar[dict[str, str]] = {
        **{name: COLUMNS[name] for name in ("seconds", "loss", "NFE")},
        "nll": "test_nll",
    }

    def __init__(self, data: str, title: str):
        self.name = f"flow-matching-{data}"
        self.title = f"Flow matching, {title}"
        self.task = "flow-matching" if data == "two-moons" else self.name

    def measurements(self, arm: RegularizerConfig, seed: int) -> tuple[str, ...]:
        """How good samples are; of unregularized flows, also of what recipes make of them."""
        del seed
        return (SAMPLING,) if arm.is_used else (SAMPLING, RECIPES)

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """All rows; at `smoke` without recipes, which take minutes."""
        jobs = super().jobs(scale, seeds)
        if scale != "smoke":
            return jobs
        return [dataclasses.replace(job, measurements=(SAMPLING,)) for job in jobs]

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """The rows of the runs, and a row for each recipe that was applied to given models."""
        numbers = super().numbers(results, scale)
        given = [x for x in results if is_usable(x) and RECIPES in x["measured"]]
        for name in NAMES:
            found = {x["config"]["seed"]: x["measured"][RECIPES][name] for x in given}
            done = [values[SAMPLING] for values in found.values() if FAILED not in values]
            row = row_of_measured(name, None, found) | {"nll": []} | _distances(done)
            numbers["rows"].append(row)
        return numbers

    def more_columns(self, results: Sequence[Result]) -> Numbers:
        """Distances of samples from test data."""
        return _distances([result["measured"][SAMPLING] for result in results])

    def claims(self, numbers: Numbers) -> list[Claim]:
        """What a penalty saves, and what it makes of a trained flow, beside reflow."""
        return [*self._from_scratch(numbers), self._eased(numbers)]

    def _eased(self, numbers: Numbers) -> Claim:
        nfe, few = (ratios(numbers, name, EASED, REFLOW) for name in ("NFE", "energy, euler 4"))
        more, margin = _more_energy(numbers, EASED, REFLOW)
        seeds = column(numbers, REFLOW, None, "NFE")
        done = column(numbers, EASED, None, "NFE")
        saved = percent_fewer(ratios(numbers, "NFE", EASED))
        words = "-"
        if nfe:
            words = (
                f"{spread(nfe)} of the evaluations of reflow ({spread(saved)} % fewer than given); "
                f"energy distance {spread(more)} more, and with four Euler steps {spread(few)} "
                "times that of reflow"
            )
        return judged(
            "A trained flow is made cheap as well as by reflow, in the same time",
            "",
            words,
            ratio("evaluations over those of reflow", nfe, at_most=1.05),
            number("energy distance over that of reflow", more, at_most=margin),
            ratio("energy distance with four Euler steps over reflow's", few, at_most=1.0),
            reached("an eased flow", [seed in done for seed in seeds]),
            rule="as many evaluations, up to 5 %, samples that are as good, and of four Euler "
            f"steps no worse; as good is up to {SAME:g} of the given energy distance of four Euler "
            f"steps more, {margin:.2g}",
            is_ours=True,
        )

    def _from_scratch(self, numbers: Numbers) -> list[Claim]:
        """Fewer evaluations for samples that are as good, and better samples of few steps."""
        nfe = ratios(numbers, "NFE", CHOSEN)
        more, margin = _more_energy(numbers, CHOSEN, GIVEN)
        energies = {
            way: ratios(numbers, f"energy, {way}", CHOSEN) for way in ("euler 4", "euler 8")
        }
        seconds = ratios(numbers, "seconds", CHOSEN)
        evaluations = list(column(numbers, CHOSEN, None, "NFE").values())
        return [
            judged(
                "A quarter of the evaluations of samples is saved, and they are no worse",
                "",
                f"{spread(percent_fewer(nfe))} % fewer ({spread(evaluations)}), energy distance "
                f"{spread(more)} more",
                ratio("evaluations", nfe, at_most=0.75),
                number("energy distance over that without", more, at_most=margin),
                rule="at most 0.75 of the evaluations, and an energy distance that is larger by "
                f"at most {margin:.2g}, {SAME:g} of that of four Euler steps without "
                "regularization",
                is_ours=True,
            ),
            judged(
                "Samples of four Euler steps are twice as good",
                "",
                f"energy distance {spread(energies['euler 4'])} times; with eight steps "
                f"{spread(energies['euler 8'])} times",
                ratio("energy distance", energies["euler 4"], at_most=0.5),
                rule="at most half the energy distance",
                is_ours=True,
            ),
            judged(
                "The penalty takes at most a quarter of the time of training",
                "",
                f"{spread(seconds) if seconds else '-'} times as long",
                ratio("time of training", seconds, at_most=1.25),
                rule="at most 1.25 times as long",
                is_ours=True,
            ),
        ]


# Names and titles. Two moons are the task without a name of its own.
DATA = {
    "two-moons": "two moons",
    "pinwheel": "pinwheel",
    "checkerboard": "checkerboard",
    "gaussians": "eight Gaussians",
    "rings": "rings",
    "digits": "digits",
    "mnist": "MNIST of 14 x 14 pixels",
}
STUDIES = {study.name: study for study in (MatchingTable(*names) for names in DATA.items())}


def _distances(found: Sequence[Json]) -> Numbers:
    ways = ["adaptive", *(f"{solver} {steps}" for solver in SOLVERS for steps in STEPS)]
    return {
        f"{kind}, {way}": [x[way][kind] for x in found]
        for way in ways
        for kind in ("energy", "wasserstein")
    }


def _more_energy(numbers: Numbers, arm: str, other: str) -> tuple[list[float], float]:
    """The energy distance of adaptive samples over that of another row, and how much is little."""
    above, below = (column(numbers, x, None, "energy, adaptive") for x in (arm, other))
    coarse = mean(column(numbers, GIVEN, None, "energy, euler 4").values())
    return [above[seed] - below[seed] for seed in above if seed in below], SAME * coarse
