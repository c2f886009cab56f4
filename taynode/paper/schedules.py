"""The paper's suggestion for later: a weight that is not the same during all of training."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..training.config import RegularizerConfig
from .statistics import mean_ratio
from .study import Claim, verdict
from .tables import AbstractTable, column, COLUMNS


WEIGHT = 0.1


class WeightSchedules(AbstractTable):
    """R_2 on digits: a constant weight, and one that falls to zero, or rises from it, in half."""

    name: ClassVar[str] = "weight-schedules"
    title: ClassVar[str] = "Digits: a weight that tapers off, and one that stays"
    task: ClassVar[str] = "digits"
    unit: ClassVar[str] = "nats"
    columns: ClassVar[dict[str, str]] = {**COLUMNS, "error": "test_error"}
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        "unregularized": RegularizerConfig(),
        "constant": RegularizerConfig("r2", WEIGHT),
        "tapers off": RegularizerConfig("r2", WEIGHT, schedule="taper", schedule_fraction=0.5),
        "rises": RegularizerConfig("r2", WEIGHT, schedule="warmup", schedule_fraction=0.5),
    }
    rows: ClassVar[Sequence[tuple[str, int | None]]] = tuple((arm, None) for arm in arms)
    smoke_grids: ClassVar[Sequence[int | None]] = (None,)

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """Whether less of the penalty in the end leaves less of its loss, or of its saving."""

        def to_constant(name: str, arm: str = "tapers off") -> float:
            return mean_ratio(*(column(numbers, x, None, name) for x in (arm, "constant")))

        nfe, loss = to_constant("NFE"), to_constant("loss")
        return [
            Claim(
                "A weight that tapers off gives a lower loss at as few evaluations",
                "suggested, not tried",
                f"{nfe:.2f} of the evaluations and {loss:.2f} of the test loss of a constant "
                f"weight (one that rises: {to_constant('NFE', 'rises'):.2f} and "
                f"{to_constant('loss', 'rises'):.2f})",
                verdict(loss < 0.97 and nfe < 1.05, nfe, loss),
            )
        ]
