"""Not in the paper: a flow in the plane, where nothing needs a download and all is seen."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..training.config import RegularizerConfig
from .statistics import mean, mean_ratio
from .study import Claim, verdict
from .tables import AbstractTable, column


WEIGHTS = (0.03, 0.07, 0.1)


class TwoMoonsTable(AbstractTable):
    """Unregularized, and R_2 of some weights."""

    name: ClassVar[str] = "two-moons"
    title: ClassVar[str] = "Two moons: what R_2 saves, and what it costs"
    task: ClassVar[str] = "density2d"
    unit: ClassVar[str] = "nats"
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        "unregularized": RegularizerConfig(),
        **{f"R_2, weight {weight:g}": RegularizerConfig("r2", weight) for weight in WEIGHTS},
    }
    rows: ClassVar[Sequence[tuple[str, int | None]]] = tuple((arm, None) for arm in arms)
    smoke_grids: ClassVar[Sequence[int | None]] = (None,)

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """As for the images of the paper, where 38 % fewer evaluations cost little."""
        out = []
        for arm in list(self.arms)[1:]:
            values = {
                name: [column(numbers, each, None, name) for each in (arm, "unregularized")]
                for name in ("NFE", "loss", "seconds")
            }
            fewer = 1 - mean_ratio(*values["NFE"])
            above, below = (mean(losses) for losses in values["loss"])
            out.append(
                Claim(
                    f"{arm}: far fewer evaluations at nearly the same density",
                    "38 % fewer, on images",
                    f"{fewer:.0%} fewer for {above - below:+.3f} nats, in "
                    f"{mean_ratio(*values['seconds']):.2f} of the training time",
                    verdict(fewer >= 0.25 and above - below <= 0.02, fewer, above - below),
                )
            )
        return out
