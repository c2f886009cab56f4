"""Table 2: a convolutional flow on MNIST, trained on several grids."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import EvaluationConfig
from ..training.config import RegularizerConfig
from .r2_sweep import TIGHT
from .statistics import mean_ratio
from .study import Claim, verdict
from .tables import AbstractTable, column, COLUMNS, time_claims


class MnistFlowTable(AbstractTable):
    """Unregularized, RNODE and R_2 on the paper's grids; R_3 and R_4 beside them."""

    name: ClassVar[str] = "table2-mnist-flow"
    title: ClassVar[str] = "MNIST as a density: what grids and regularizers do to a flow"
    task: ClassVar[str] = "mnist-flow"
    unit: ClassVar[str] = "bits/dim"
    columns: ClassVar[dict[str, str]] = {**COLUMNS, "NFE, sampling": "test_sampling_nfe"}
    # A time of its own for each image of a batch: with one for all, the penalty's noise costs far
    # more bits/dim than the penalty.
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        "unregularized": RegularizerConfig(),
        # As its authors have it for images.
        "RNODE": RegularizerConfig("rnode", 0.01, per_row=True),
        "R_2": RegularizerConfig("r2", 0.03, per_row=True),
        "R_3": RegularizerConfig("r3", 0.003, per_row=True),
        "R_4": RegularizerConfig("r4", 3e-4, per_row=True),
        "R_2, Augmented": RegularizerConfig("r2", 0.03, quadrature="augmented"),
    }
    rows: ClassVar[Sequence[tuple[str, int | None]]] = (
        ("unregularized", 8),
        ("unregularized", None),
        *(("RNODE", steps) for steps in (5, 6, 8, None)),
        *(("R_2", steps) for steps in (5, 6, 8, None)),
        ("R_3", 8),
        ("R_4", 8),
        ("R_2, Augmented", 5),
    )
    smoke_grids: ClassVar[Sequence[int | None]] = (5, None)

    def evaluations(self, scale: str) -> tuple[EvaluationConfig, ...]:
        """At a tolerance where there are more steps to be saved, too."""
        return () if scale == "smoke" else (dataclasses.replace(TIGHT, samples=20),)

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """The saving, its price, and what grids do without regularization."""
        ratio = lambda arm, name: mean_ratio(
            column(numbers, arm, None, name), column(numbers, "unregularized", None, name)
        )
        fewer, worse = 1 - ratio("R_2", "NFE"), ratio("R_2", "loss") - 1
        slower = ratio("R_2", "seconds")
        sampling = f"; in sampling {1 - ratio('R_2', 'NFE, sampling'):.0%} fewer"
        tight = f"NFE {TIGHT.name}"
        if tight in numbers["rows"][0]:
            sampling += f"; at a tolerance of {TIGHT.name} {1 - ratio('R_2', tight):.0%} fewer"
        fails = {arm: _failed_on_grids(numbers, arm) for arm in ("unregularized", "R_2")}
        return [
            Claim(
                "R_2 lowers the number of evaluations at nearly the same bits/dim",
                "149 to 92, 38 % fewer, for 0.6 % more bits/dim",
                f"{fewer:.0%} fewer for {worse:+.1%} bits/dim{sampling}; RNODE "
                f"{1 - ratio('RNODE', 'NFE'):.0%} for {ratio('RNODE', 'loss') - 1:+.1%}",
                verdict(fewer >= 1 / 3 and worse < 0.01, fewer, worse),
            ),
            Claim(
                "Training takes longer with R_2, on adaptive steps (here with Sampled)",
                "54.7 h and 35.8 h, 1.53 times",
                f"{slower:.2f} times",
                verdict(slower > 1.1, slower),
            ),
            *time_claims(numbers, 5, 2.4, "27.1 h and 11.1 h, on 8 steps"),
            Claim(
                "A fixed grid is unstable without regularization",
                "the loss is NaN on 8 steps",
                f"{fails['unregularized']:.0%} of the runs on grids fail without, "
                f"{fails['R_2']:.0%} with R_2",
                verdict(fails["unregularized"] > fails["R_2"], *fails.values()),
            ),
        ]


def _failed_on_grids(numbers: dict[str, Any], arm: str) -> float:
    """Which part of the runs of an arm on fixed grids; not a number if there are none."""
    rows = [row for row in numbers["rows"] if row["model"] == arm and row["steps"] is not None]
    total = sum(row["failed"] + len(row["loss"]) for row in rows)
    return sum(row["failed"] for row in rows) / total if total else math.nan
