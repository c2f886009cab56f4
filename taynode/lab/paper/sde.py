"""Not in the paper: penalties for stochastic differential equations."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from ..config import RegularizerConfig, TrainConfig
from ..sweep.results import Result
from .sampling import ENDS
from .statistics import percent_fewer, spread
from .study import Claim, judged, Numbers
from .table_rows import column, ratios
from .tables import AbstractTable, COLUMNS
from .verdicts import ratio


GIVEN = "unregularized"
# The settings that were found best with seed 100, before any run of this study.
CHOSEN = "error of steps, weight 0.003"
# Up to so many times the energy distance count as the same.
SAME = 1.1


class SdeTable(AbstractTable):
    """Eight Gaussians: penalties on steps, drift and noise."""

    name = "sde"
    title = "A neural SDE with adaptive steps"
    task = "sde"
    unit = "energy score"
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        GIVEN: RegularizerConfig(),
        **{
            f"error of steps, weight {w:g}": RegularizerConfig("error", w, quadrature="steps")
            for w in (0.001, 0.003, 0.01)
        },
        "error of a trial step, weight 0.003": RegularizerConfig("error", 0.003, per_row=False),
        **{f"R_2 of the drift, weight {w:g}": RegularizerConfig("r2", w) for w in (1e-3, 1e-2)},
        **{
            f"norm of the diffusion, weight {w:g}": RegularizerConfig("diffusion", w)
            for w in (0.003, 0.03)
        },
    }
    rows = tuple((arm, None) for arm in arms)
    smoke_rows = ((GIVEN, None), (CHOSEN, None))
    columns: ClassVar[dict[str, str]] = {
        name: COLUMNS[name] for name in ("seconds", "loss", "NFE", "R_2")
    }

    def measurements(self, arm: RegularizerConfig, seed: int) -> tuple[str, ...]:
        """How close the ends of paths are to the data. The loss hardly shows it."""
        del arm, seed
        return (ENDS,)

    def more_columns(self, results: Sequence[Result]) -> Numbers:
        """The energy distance from test data."""
        return {"energy distance": [x["measured"][ENDS]["energy"] for x in results]}

    def config_of(self, defaults: TrainConfig, arm: str, steps: int | None) -> TrainConfig:
        """The settings of a row, with the solver of the task."""
        del steps
        return dataclasses.replace(defaults, regularizer=self.arms[arm])

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Fewer steps, and samples that are as good."""
        nfe, energy = (ratios(numbers, name, CHOSEN) for name in ("NFE", "energy distance"))
        evaluations = list(column(numbers, CHOSEN, None, "NFE").values())
        return [
            judged(
                "At least 30 % of the steps are saved, and samples are as good",
                "",
                f"{spread(percent_fewer(nfe))} % fewer ({spread(evaluations)} evaluations of the "
                f"drift) at {spread(energy)} times the energy distance, with {CHOSEN}",
                ratio("evaluations", nfe, at_most=0.7),
                ratio("energy distance", energy, at_most=SAME),
                rule=f"at most 0.7 of the evaluations, and {SAME} times the energy distance",
                is_ours=True,
            )
        ]
