"""Not in the paper: all ways to cheap dynamics, at equal evaluations."""

import dataclasses
from collections.abc import Hashable, Sequence
from typing import ClassVar

from ..config import RegularizerConfig, TrainConfig
from ..sweep.plan import Job
from ..sweep.results import Result
from .budgets import BASES, Basis, SHARES
from .chart import Chart, Line, Panel
from .r2_sweep import LOOSE, TIGHT
from .rival_claims import Compared, compared_claims, GIVEN, solving_claim
from .solving import SOLVING
from .statistics import mean
from .study import Claim, Numbers
from .tables import AbstractTable, COLUMNS


NO_PENALTY = RegularizerConfig()


@dataclasses.dataclass(frozen=True)
class Rival:
    """What a method changes in the settings of a run; see `TrainConfig`.

    - `tolerance`: that of training.
    """

    regularizer: RegularizerConfig = NO_PENALTY
    steer: float = 0.0
    spectral_norm: float | None = None
    weight_decay: float = 0.0
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
            optimizer=replace(config.optimizer, weight_decay=self.weight_decay)
            if self.weight_decay
            else config.optimizer,
        )


# Penalties, whose weights follow a budget.
PENALTIES = {
    "R_2": RegularizerConfig("r2"),
    "R_3": RegularizerConfig("r3"),
    "R_4": RegularizerConfig("r4"),
    "R_5": RegularizerConfig("r5"),
    "R_6": RegularizerConfig("r6"),
    "expected NFE": RegularizerConfig("nfe"),
    "kinetic energy": RegularizerConfig("kinetic"),
    "RNODE": RegularizerConfig("rnode"),
    "curvature": RegularizerConfig("curvature"),
    "error of a trial step (LRNDE)": RegularizerConfig("error"),
    "error of steps (ERNODE)": RegularizerConfig("error", quadrature="steps"),
    "stiffness of steps (SRNODE)": RegularizerConfig("stiffness", quadrature="steps"),
    "distance from a line (TPR)": RegularizerConfig("polynomial", quadrature="path", points=2),
}
# Methods without a weight are shown where they end.
OTHERS = {
    "STEER, 0.25": Rival(steer=0.25),
    "STEER, 0.5": Rival(steer=0.5),
    "weight decay, 1e-4": Rival(weight_decay=1e-4),
    "weight decay, 1e-3": Rival(weight_decay=1e-3),
    "spectral norm, 2": Rival(spectral_norm=2.0),
    "spectral norm, 1": Rival(spectral_norm=1.0),
    "trained at 1e-3": Rival(tolerance=1e-3),
    "trained at 1e-2": Rival(tolerance=1e-2),
}


def rivals_of(need: float) -> dict[str, Rival]:
    """All methods by the name of a row."""
    return {
        GIVEN: Rival(),
        **{
            f"{name}, budget {share:g}": Rival(dataclasses.replace(penalized, budget=share * need))
            for share in SHARES
            for name, penalized in PENALTIES.items()
        },
        **OTHERS,
    }


class Rivals(AbstractTable):
    """Methods with budgets of 0.75 and 0.5 of the evaluations of unregularized models, and others.

    The settings are those of the study of budgets on the same task.
    """

    unit = "nats"
    columns: ClassVar[dict[str, str]] = {
        **{name: COLUMNS[name] for name in ("seconds", "loss", "NFE")},
        "training NFE": "training_nfe",
    }

    def __init__(self, basis: Basis):
        self.basis, self.task = basis, basis.task
        self.name = f"rivals-{basis.name}"
        self.title = f"{basis.title}: all methods at equal evaluations"
        self.rivals = rivals_of(basis.need)
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
        others = config.steer, config.spectral_norm, config.optimizer.weight_decay
        return super().row_key(config), others, config.training.rtol

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
        found = [x for result in results if (x := result["measured"].get(SOLVING))]
        solver = lambda x: next(iter(x["solvers"].values()))
        return {
            "rejected": [solver(x)["rejected"] for x in found],
            "true error": [solver(x)["error"] for x in found],
            **{
                f"true error, {name}": [x["solvers"][name]["error"] for x in found]
                for name in ("tsit5", "bosh3")
            },
            "least NFE": [x["cheapest"]["nfe"] for x in found],
        }

    def chart(self, numbers: Numbers) -> Chart:
        """The loss over the evaluations, a line for each method, as means over seeds."""
        found, marks = self._compared(numbers), []
        for i, name in enumerate(PENALTIES):
            points = sorted(
                (mean(found.column(row, "NFE").values()), mean(found.column(row, "loss").values()))
                for row in found.front(name)
                if found.column(row, "NFE")
            )
            if len(points) > 1:
                marks.append(Line(*zip(*points, strict=True), label=name, color=i))
        for i, name in enumerate(OTHERS):
            if nfe := found.column(name, "NFE"):
                loss = mean(found.column(name, "loss").values())
                color = len(PENALTIES) + i
                marks.append(Line([mean(nfe.values())], [loss], name, color, joined=False))
        x, y = "evaluations per test sample", f"test loss, {numbers['unit']}"
        return Chart([Panel(marks, x=x, y=y)], height=5.0)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Each method beside R_3 at equal evaluations, and what the cheapest solver leaves."""
        found = self._compared(numbers)
        return [*compared_claims(found, list(PENALTIES)), solving_claim(found)]

    def _compared(self, numbers: Numbers) -> Compared:
        return Compared(numbers, self.basis.steps, self.basis.need)


STUDIES = {
    study.name: study
    for study in (
        Rivals(BASES[name])
        for name in ("digits", "two-moons", "oscillators", "physionet", "miniboone")
    )
}
