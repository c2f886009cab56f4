"""Not in the paper: a flow in the plane, where nothing needs a download and all is seen."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..config import RegularizerConfig
from .statistics import spread
from .study import Claim, judged
from .tables import AbstractTable, column, ratios, time_in_words
from .verdicts import number, ratio


WEIGHTS = (0.03, 0.07, 0.1)


class TwoMoonsTable(AbstractTable):
    """Unregularized, R_2 of some weights, and R_3."""

    name: ClassVar[str] = "two-moons"
    title: ClassVar[str] = "Two moons: a flow, by regularizer"
    num_seeds: ClassVar[int] = 5
    remarks: ClassVar[tuple[str, ...]] = (
        "All weights of R_2 are shown; that of R_3 is one of two, tried on one of these seeds",
    )
    task: ClassVar[str] = "density2d"
    unit: ClassVar[str] = "nats"
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        "unregularized": RegularizerConfig(),
        **{
            f"R_2, weight {weight:g}": RegularizerConfig("r2", weight, per_row=False)
            for weight in WEIGHTS
        },
        # A time of its own for each point of a batch.
        **{
            f"R_2, weight {weight:g}, per point": RegularizerConfig("r2", weight)
            for weight in WEIGHTS[1:]
        },
        "R_3, weight 0.003, per point": RegularizerConfig("r3", 0.003),
    }
    rows: ClassVar[Sequence[tuple[str, int | None]]] = tuple((arm, None) for arm in arms)
    smoke_rows: ClassVar[Sequence[tuple[str, int | None]]] = (rows[0], rows[-1])

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """How many evaluations are saved, and what is paid for it."""
        out = []
        for arm in list(self.arms)[1:]:
            nfe = ratios(numbers, "NFE", arm)
            plain, regular = (column(numbers, x, None, "loss") for x in ("unregularized", arm))
            paid = [regular[seed] - plain[seed] for seed in regular if seed in plain]
            fewer = [100 * (1 - x) for x in nfe]
            out.append(
                judged(
                    f"{arm}: at least a quarter fewer evaluations for at most 0.02 nats",
                    "",
                    f"{spread(fewer)} % fewer for {spread(paid)} nats"
                    + time_in_words(numbers, arm),
                    ratio("evaluations with over without", nfe, at_most=0.75),
                    number("nats", paid, at_most=0.02),
                    rule="at least 25 % fewer, for at most 0.02 nats",
                    is_ours=True,
                )
            )
        return out
