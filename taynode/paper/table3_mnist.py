"""Table 3: a classifier on MNIST, trained on several grids."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..training.config import RegularizerConfig
from .statistics import mean_ratio
from .study import Claim, verdict
from .tables import AbstractTable, column


GRIDS = (2, 4, 8, None)


class MnistTable(AbstractTable):
    """Unregularized, RNODE and R_2 on grids of 2, 4 and 8 steps, and adaptively."""

    name: ClassVar[str] = "table3-mnist"
    title: ClassVar[str] = "MNIST: what grids and regularizers do to a classifier"
    task: ClassVar[str] = "mnist"
    unit: ClassVar[str] = "nats"
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        "unregularized": RegularizerConfig(),
        "RNODE": RegularizerConfig("rnode", 0.01),
        "R_2": RegularizerConfig("r2", 0.01),
    }
    rows: ClassVar[Sequence[tuple[str, int | None]]] = tuple(
        (arm, steps) for arm in arms for steps in GRIDS
    )

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """What R_2 costs next to RNODE, and what it saves."""
        to_rival = mean_ratio(
            column(numbers, "R_2", 8, "seconds"), column(numbers, "RNODE", 8, "seconds")
        )
        plain, regular = (column(numbers, arm, None, "NFE") for arm in ("unregularized", "R_2"))
        fewer = 1 - mean_ratio(regular, plain)
        return [
            Claim(
                "R_2 takes 1.7 times as long to train as RNODE, at equal steps (here with Sampled)",
                "0.61 h and 0.37 h",
                f"{to_rival:.2f} times",
                verdict(to_rival > 1.3, to_rival),
            ),
            Claim(
                "R_2 lowers the number of evaluations",
                "110 to 104, 5 % fewer",
                f"{fewer:.0%} fewer",
                verdict(fewer > 0.05, fewer),
            ),
        ]
