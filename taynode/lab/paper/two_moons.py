"""Not in the paper: a flow in the plane, which needs no download and can be drawn."""

from typing import ClassVar

from ..config import RegularizerConfig
from .statistics import percent_fewer, spread
from .study import Claim, judged, Numbers
from .table_claims import time_in_words
from .table_rows import column, ratios
from .tables import AbstractTable
from .verdicts import number, ratio


WEIGHTS = (0.03, 0.07, 0.1)


class TwoMoonsTable(AbstractTable):
    """Unregularized, R_2 of some weights, and R_3."""

    name = "two-moons"
    title = "Two moons: a flow, by regularizer"
    num_seeds = 5
    remarks = (
        "All weights of R_2 are shown; that of R_3 is one of two, tried on one of these seeds",
    )
    task = "density2d"
    unit = "nats"
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        "unregularized": RegularizerConfig(),
        **{
            f"R_2, weight {weight:g}": RegularizerConfig("r2", weight, per_row=False)
            for weight in WEIGHTS
        },
        # Each point of a batch has a time of its own.
        **{
            f"R_2, weight {weight:g}, per point": RegularizerConfig("r2", weight)
            for weight in WEIGHTS[1:]
        },
        "R_3, weight 0.003, per point": RegularizerConfig("r3", 0.003),
    }
    rows = tuple((arm, None) for arm in arms)
    smoke_rows = (rows[0], rows[-1])

    def claims(self, numbers: Numbers) -> list[Claim]:
        """The saving of evaluations, and its price."""
        out = []
        for arm in list(self.arms)[1:]:
            nfe = ratios(numbers, "NFE", arm)
            plain, regular = (column(numbers, x, None, "loss") for x in ("unregularized", arm))
            paid = [regular[seed] - plain[seed] for seed in regular if seed in plain]
            out.append(
                judged(
                    f"{arm}: at least a quarter fewer evaluations for at most 0.02 nats",
                    "",
                    f"{spread(percent_fewer(nfe))} % fewer for {spread(paid)} nats"
                    + time_in_words(numbers, arm),
                    ratio("evaluations with over without", nfe, at_most=0.75),
                    number("nats", paid, at_most=0.02),
                    rule="at least 25 % fewer, for at most 0.02 nats",
                    is_ours=True,
                )
            )
        return out
