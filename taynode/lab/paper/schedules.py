"""The paper's suggestion for later: a weight that is not the same during all of training."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..config import RegularizerConfig
from ..sweep.plan import EvaluationConfig
from .r2_sweep import TIGHT
from .statistics import spread
from .study import Claim, judged
from .tables import AbstractTable, COLUMNS, count_in, ratios
from .verdicts import ratio


WEIGHT = 0.1


class WeightSchedules(AbstractTable):
    """R_2 on digits: a constant weight, and one that falls to zero, or rises from it, in half."""

    name: ClassVar[str] = "weight-schedules"
    title: ClassVar[str] = "Digits: constant, falling and rising weights"
    num_seeds: ClassVar[int] = 5
    remarks: ClassVar[tuple[str, ...]] = (
        "The weight is one of two that were tried on the same data",
    )
    task: ClassVar[str] = "digits"
    unit: ClassVar[str] = "nats"
    beside: ClassVar[EvaluationConfig] = TIGHT
    columns: ClassVar[dict[str, str]] = {**COLUMNS, "error": "test_error"}
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        "unregularized": RegularizerConfig(),
        "constant": RegularizerConfig("r2", WEIGHT),
        "tapers off": RegularizerConfig("r2", WEIGHT, "taper", 0.5),
        "rises": RegularizerConfig("r2", WEIGHT, "warmup", 0.5),
    }
    rows: ClassVar[Sequence[tuple[str, int | None]]] = tuple((arm, None) for arm in arms)
    smoke_rows: ClassVar[Sequence[tuple[str, int | None]]] = (rows[0], rows[2])

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """Whether less of the penalty in the end leaves less of its loss, or of its saving."""

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
