"""Not in the paper: penalties for stochastic differential equations."""

import dataclasses
from typing import ClassVar

from ..config import RegularizerConfig, TrainConfig
from .statistics import percent_fewer, spread
from .study import Claim, judged, Numbers
from .table_rows import column, ratios
from .tables import AbstractTable, COLUMNS
from .verdicts import ratio


GIVEN = "unregularized"
# The settings that were found best with seed 100, before any run of this study.
CHOSEN = "error of steps, weight 0.1"
# Up to so many times the loss count as the same loss.
SAME = 1.01


class SdeTable(AbstractTable):
    """Paths of a noisy rotation: penalties on steps, drift and noise."""

    name = "sde"
    title = "A neural SDE with adaptive steps"
    task = "sde"
    unit = "energy score"
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        GIVEN: RegularizerConfig(),
        **{
            f"error of steps, weight {w:g}": RegularizerConfig("error", w, quadrature="steps")
            for w in (0.01, 0.03, 0.1)
        },
        "error of a trial step, weight 0.03": RegularizerConfig("error", 0.03, per_row=False),
        **{f"R_2 of the drift, weight {w:g}": RegularizerConfig("r2", w) for w in (1e-6, 1e-5)},
        **{
            f"norm of the diffusion, weight {w:g}": RegularizerConfig("diffusion", w)
            for w in (0.01, 0.1)
        },
    }
    rows = tuple((arm, None) for arm in arms)
    smoke_rows = ((GIVEN, None), (CHOSEN, None))
    columns: ClassVar[dict[str, str]] = {
        **{name: COLUMNS[name] for name in ("seconds", "loss", "NFE", "R_2")},
        "mean error": "test_mean_error",
        "variance": "test_variance",
    }

    def config_of(self, defaults: TrainConfig, arm: str, steps: int | None) -> TrainConfig:
        """The settings of a row, with the solver of the task."""
        del steps
        return dataclasses.replace(defaults, regularizer=self.arms[arm])

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Fewer steps at the same loss."""
        nfe, loss = (ratios(numbers, name, CHOSEN) for name in ("NFE", "loss"))
        evaluations = list(column(numbers, CHOSEN, None, "NFE").values())
        return [
            judged(
                "At least 30 % of the steps are saved at the same loss",
                "",
                f"{spread(percent_fewer(nfe))} % fewer ({spread(evaluations)} evaluations of the "
                f"drift) at {spread(loss)} times the loss, with {CHOSEN}",
                ratio("evaluations", nfe, at_most=0.7),
                ratio("loss", loss, at_most=SAME),
                rule=f"at most 0.7 of the evaluations, and {SAME} times the loss",
                is_ours=True,
            )
        ]
