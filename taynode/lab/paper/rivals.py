"""Not in the paper: all ways to cheap dynamics, at equal evaluations.

References are in the files of the regularizers.
"""

import dataclasses
import itertools
import math
from collections.abc import Hashable, Sequence
from typing import ClassVar

from ..config import RegularizerConfig, TrainConfig
from ..sweep.plan import Job
from ..sweep.results import Result
from .budgets import BASES, Basis, SHARES
from .chart import Chart, Line, Panel
from .r2_sweep import LOOSE, TIGHT
from .rival_claims import (
    Compared,
    compared_claims,
    fooled_claims,
    GIVEN,
    published_claim,
    solving_claim,
)
from .solving import SOLVING, UNTRAINED
from .statistics import mean, mean_interval
from .study import Claim, Numbers
from .tables import AbstractTable, COLUMNS, TRAINING_NFE


NO_PENALTY = RegularizerConfig()


@dataclasses.dataclass(frozen=True)
class Rival:
    """What a method changes in the settings of a run; see `TrainConfig`.

    - `tolerance`: that of training.
    """

    regularizer: RegularizerConfig = NO_PENALTY
    steer: float = 0.0
    spectral_norm: float | None = None
    augment: int = 0
    tolerance: float | None = None

    def applied(self, config: TrainConfig) -> TrainConfig:
        """The settings with these changes."""
        replace, training = dataclasses.replace, config.training
        if self.tolerance is not None:
            training = replace(training, rtol=self.tolerance, atol=self.tolerance)
        return replace(
            config,
            training=training,
            regularizer=self.regularizer,
            steer=self.steer,
            spectral_norm=self.spectral_norm,
            augment=self.augment,
        )


# Penalties, whose weights follow a budget; the last two are of parameters. Dopri5 estimates errors
# of O(h^5), so R_5 is what its control sees, and R_6 the leading term of what it does not.
PENALTIES = {
    "R_2": RegularizerConfig("r2"),
    "R_3": RegularizerConfig("r3"),
    "R_5": RegularizerConfig("r5"),
    "R_6": RegularizerConfig("r6"),
    "tail of R_3": RegularizerConfig("r3", power=4.0),
    "expected NFE": RegularizerConfig("nfe"),
    "RNODE": RegularizerConfig("rnode"),
    "curvature": RegularizerConfig("curvature"),
    "error of a trial step (LRNDE)": RegularizerConfig("error"),
    "error of steps (ERNODE)": RegularizerConfig("error", quadrature="steps"),
    "stiffness of steps (SRNODE)": RegularizerConfig("stiffness", quadrature="steps"),
    "distance from a line (TPR)": RegularizerConfig("polynomial", quadrature="path", points=2),
    "weight decay": RegularizerConfig("decay"),
    "spectral norms": RegularizerConfig("spectral"),
}
# Methods that no weight can steer are shown where they end: a search for the setting that reaches
# a budget would take several runs for each seed, and evaluations need not fall with the setting.
OTHERS = {
    "STEER": {"0.25": Rival(steer=0.25), "0.5": Rival(steer=0.5)},
    "training tolerance": {"1e-3": Rival(tolerance=1e-3), "1e-2": Rival(tolerance=1e-2)},
    "spectral norms at most": {"1": Rival(spectral_norm=1.0)},
    "zeros appended": {"8": Rival(augment=8)},
}
# The density of a flow is that of its samples, which have no room for zeros.
FLOWS = "two-moons", "miniboone"
# A run on PhysioNet takes minutes, so it has fewer methods, and a single setting of those without a
# weight; and some have a lower budget, at which published methods are.
SLOW = "physionet"
LEFT_OUT = (
    "R_6",
    "tail of R_3",
    "weight decay",
    "spectral norms",
    "spectral norms at most",
    "zeros appended",
)
# Its evaluations have to be a quarter of those of each seed, and seeds need more or less.
LOW = 0.22
LOW_TOO = "R_2", "R_3", "expected NFE", "error of steps (ERNODE)", "stiffness of steps (SRNODE)"


def methods_of(basis: Basis) -> dict[str, dict[str, Rival]]:
    """The methods on a task, each with its rows: budgets from high to low, or settings."""
    methods = {}
    for name, penalized in PENALTIES.items():
        shares = (*SHARES, LOW) if basis.name == SLOW and name in LOW_TOO else SHARES
        methods[name] = {
            f"{name}, budget {share:g}": Rival(
                dataclasses.replace(penalized, budget=share * basis.need)
            )
            for share in shares
        }
    for name, settings in OTHERS.items():
        rows = {f"{name}, {setting}": rival for setting, rival in settings.items()}
        methods[name] = dict(itertools.islice(rows.items(), 1 if basis.name == SLOW else None))
    left_out = {SLOW: LEFT_OUT, **dict.fromkeys(FLOWS, ("zeros appended",))}.get(basis.name, ())
    return {name: rows for name, rows in methods.items() if name not in left_out}


class Rivals(AbstractTable):
    """Methods with budgets of 0.75 and 0.5 of the evaluations of unregularized models, and others.

    The settings are those of the study of budgets on the same task.
    """

    unit = "nats"
    needs = (TRAINING_NFE,)
    columns: ClassVar[dict[str, str]] = {
        **{name: COLUMNS[name] for name in ("seconds", "loss", "NFE")},
        "training NFE": TRAINING_NFE,
    }

    def __init__(self, basis: Basis):
        self.basis, self.task = basis, basis.task
        self.name = f"rivals-{basis.name}"
        self.title = f"{basis.title}: all methods at equal evaluations"
        self.methods = methods_of(basis)
        self.rivals = {GIVEN: Rival()}
        for rows in self.methods.values():
            self.rivals |= rows
        self.arms = {name: rival.regularizer for name, rival in self.rivals.items()}
        self.rows = tuple((name, basis.steps) for name in self.rivals)
        smoke = (GIVEN, f"error of steps (ERNODE), budget {SHARES[0]:g}", "STEER, 0.25")
        self.smoke_rows = tuple((name, basis.steps) for name in smoke)
        self.beside = LOOSE if basis.evaluation is TIGHT else TIGHT

    def defaults(self, scale: str) -> TrainConfig:
        """The settings of the study of budgets."""
        return self.basis.defaults(scale)

    def config_of(self, defaults: TrainConfig, arm: str, steps: int | None) -> TrainConfig:
        """The settings of a row."""
        return self.rivals[arm].applied(super().config_of(defaults, arm, steps))

    def row_key(self, config: TrainConfig) -> Hashable:
        """The settings in which rows differ."""
        others = config.steer, config.spectral_norm, config.augment, config.training.rtol
        return super().row_key(config), others

    def measurements(self, arm: RegularizerConfig, seed: int) -> tuple[str, ...]:
        """How solvers do on each model."""
        del arm, seed
        return (SOLVING,)

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """All rows; at `smoke` without measurements, which take minutes."""
        jobs = super().jobs(scale, seeds)
        if scale != "smoke":
            return jobs
        return [dataclasses.replace(job, measurements=()) for job in jobs]

    def more_columns(self, results: Sequence[Result]) -> Numbers:
        """Rejected steps, true errors, and the fewest evaluations at an equal true error."""
        unknown = {"nfe": math.nan, "rejected": math.nan, "error": math.nan}
        found = [result["measured"].get(SOLVING, {}) for result in results]
        solvers = [x.get("solvers", {}) for x in found]
        # The first one is that of training and evaluations.
        own = [next(iter(x.values()), unknown) for x in solvers]
        other = {name: [x.get(name, unknown) for x in solvers] for name in UNTRAINED}
        by_name = {"dopri5": own, **other}
        return {
            "rejected": [x["rejected"] for x in own],
            "true error": [x["error"] for x in own],
            **{f"true error, {name}": [x["error"] for x in of] for name, of in other.items()},
            **{f"NFE, {name}": [x["nfe"] for x in of] for name, of in by_name.items()},
            "least NFE": [x.get("cheapest", unknown)["nfe"] or math.nan for x in found],
        }

    def chart(self, numbers: Numbers) -> Chart:
        """The methods from top to bottom, beside unregularized models.

        The loss that is paid at equal evaluations, with the interval over seeds; and for the row
        that stands for a method, its evaluations and true errors of each seed.
        """
        found = self.compared(numbers)
        names, ends = list(found.rows), [found.end(name) for name in found.rows]
        panels = []
        for share in SHARES:
            paid = [found.paid(name, share) for name in names]
            if any(paid):
                marks = [_interval(values, i) for i, values in enumerate(paid) if values]
                x = f"loss over unregularized,\nat {share:g} of the evaluations"
                panels.append(Panel([_guide(0.0, len(names)), *marks], x=x, rows=names))
        for column, x in (("NFE", "evaluations"), ("true error", "true error")):
            ratios = [found.ratios(column, row) for row in ends]
            if any(ratios):
                marks = [
                    Line(values, [i] * len(values), color=_color(names[i]), joined=False)
                    for i, values in enumerate(ratios)
                    if values
                ]
                title = f"{x},\ntimes unregularized"
                panels.append(Panel([_guide(1.0, len(names)), *marks], x=title, rows=names))
        return Chart(panels, share_y=True, height=1.2 + 0.28 * len(names))

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Each method at equal evaluations, what fools the solver, and what the cheapest leaves."""
        found = self.compared(numbers)
        claims = [*compared_claims(found), *fooled_claims(found), solving_claim(found)]
        return [*claims, published_claim(found)] if self.basis.name == SLOW else claims

    def compared(self, numbers: Numbers) -> Compared:
        """The numbers by method."""
        rows = {name: tuple(rows) for name, rows in self.methods.items()}
        return Compared(numbers, self.basis.steps, self.basis.need, rows, OTHERS)


def _color(method: str) -> int:
    """One color for methods with a budget, and one for the others."""
    return 1 if method in PENALTIES else 2


def _guide(x: float, num_rows: int) -> Line:
    return Line([x, x], [-0.5, num_rows - 0.5], color=-1, dots=False)


def _interval(values: Sequence[float], row: int) -> Line:
    """The mean, with the interval over seeds."""
    found = mean_interval(values)
    half = [] if found is None else [(found[1] - found[0]) / 2]
    return Line([mean(values)], [row], color=1, joined=False, x_error=half)


STUDIES = {
    study.name: study
    for study in (
        Rivals(BASES[name])
        for name in ("digits", "two-moons", "oscillators", "physionet", "miniboone")
    )
}
