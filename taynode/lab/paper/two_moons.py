"""Not in the paper: a flow in the plane, where nothing needs a download and all is seen."""

from collections.abc import Sequence
from typing import Any, ClassVar

from ..config import RegularizerConfig
from .statistics import median, spread
from .study import all_of, Claim, seeds_agree, verdict
from .tables import AbstractTable, column, ratios


WEIGHTS = (0.03, 0.07, 0.1)


class TwoMoonsTable(AbstractTable):
    """Unregularized, R_2 of some weights, and R_3."""

    name: ClassVar[str] = "two-moons"
    title: ClassVar[str] = "Two moons: what R_2 and R_3 save, and what they cost"
    num_seeds: ClassVar[int] = 5
    task: ClassVar[str] = "density2d"
    unit: ClassVar[str] = "nats"
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        "unregularized": RegularizerConfig(),
        **{f"R_2, weight {weight:g}": RegularizerConfig("r2", weight) for weight in WEIGHTS},
        # A time of its own for each point of a batch.
        **{
            f"R_2, weight {weight:g}, per point": RegularizerConfig("r2", weight, per_row=True)
            for weight in WEIGHTS[1:]
        },
        "R_3, weight 0.003, per point": RegularizerConfig("r3", 0.003, per_row=True),
    }
    rows: ClassVar[Sequence[tuple[str, int | None]]] = tuple((arm, None) for arm in arms)
    smoke_rows: ClassVar[Sequence[tuple[str, int | None]]] = (rows[0], rows[-1])

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """How many evaluations are saved, and what is paid for it."""
        out = []
        for arm in list(self.arms)[1:]:
            nfe, seconds = (ratios(numbers, name, arm) for name in ("NFE", "seconds"))
            plain, regular = (column(numbers, x, None, "loss") for x in ("unregularized", arm))
            paid = [regular[seed] - plain[seed] for seed in regular if seed in plain]
            fewer = [100 * (1 - x) for x in nfe]
            out.append(
                Claim(
                    f"{arm}: at least a quarter fewer evaluations for at most 0.02 nats",
                    "",
                    f"{spread(fewer)} % fewer for {spread(paid)} nats, in {median(seconds):.2f} of "
                    "the training time",
                    verdict(
                        all_of(seeds_agree(fewer, at_least=25.0), seeds_agree(paid, at_most=0.02))
                    ),
                    rule="at least 25 % fewer, for at most 0.02 nats",
                    is_ours=True,
                )
            )
        return out
