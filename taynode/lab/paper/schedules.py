"""A suggestion of the paper: a weight that changes during training."""

from typing import ClassVar

from ..config import RegularizerConfig
from .r2_sweep import TIGHT
from .statistics import spread
from .study import Claim, judged, Numbers
from .table_rows import count_in, ratios
from .tables import AbstractTable, COLUMNS
from .verdicts import ratio


WEIGHT = 0.1


class WeightSchedules(AbstractTable):
    """R_2 on digits: a constant weight, and weights that fall to zero or rise from zero."""

    name = "weight-schedules"
    title = "Digits: constant, falling and rising weights"
    num_seeds = 5
    remarks = ("The weight is one of two that were tried on the same data",)
    task = "digits"
    unit = "nats"
    beside = TIGHT
    columns: ClassVar[dict[str, str]] = {**COLUMNS, "error": "test_error"}
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        "unregularized": RegularizerConfig(),
        "constant": RegularizerConfig("r2", WEIGHT),
        "tapers off": RegularizerConfig("r2", WEIGHT, "taper", 0.5),
        "rises": RegularizerConfig("r2", WEIGHT, "warmup", 0.5),
    }
    rows = tuple((arm, None) for arm in arms)
    smoke_rows = (rows[0], rows[2])

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Whether a weight that falls to zero costs less loss, and whether it saves as much."""

        def to_constant(name: str, arm: str = "tapers off") -> list[float]:
            return ratios(numbers, name, arm, "constant")

        count = count_in(numbers)
        nfe, loss = to_constant(count), to_constant("loss")
        rises = [spread(to_constant(name, "rises")) for name in (count, "loss")]
        return [
            judged(
                "A weight that tapers off gives a lower loss at as few evaluations",
                "suggested, not tried",
                f"{spread(nfe)} of the evaluations and {spread(loss)} of the test loss of a "
                f"constant weight (one that rises: {' and '.join(rises)})",
                ratio("loss of tapering over constant", loss, at_most=0.97),
                ratio("evaluations of tapering over constant", nfe, at_most=1.05),
                rule="at most 0.97 of the loss, for at most 1.05 of the evaluations",
                is_ours=True,
            )
        ]
