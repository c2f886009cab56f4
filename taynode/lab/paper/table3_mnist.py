"""Table 3: a classifier on MNIST, trained on several grids."""

import dataclasses
from typing import ClassVar

from ..config import RegularizerConfig, TrainConfig
from . import mnist_sweep
from .r2_sweep import TIGHT
from .statistics import percent_fewer, percent_more, spread
from .study import Claim, Numbers
from .table_claims import fewer_claim, takes_no_longer, time_claim, time_claims
from .table_rows import count_in, ratios, row_ratios
from .tables import AbstractTable


GRIDS = (2, 4, 8, None)
NUM_EPOCHS = 8


class MnistTable(AbstractTable):
    """Unregularized, RNODE and R_2 on grids of 2, 4 and 8 steps, and adaptively."""

    name = "table3-mnist"
    title = "MNIST: a classifier, by regularizer and grid"
    task = "mnist"
    unit = "nats"
    remarks = ("All weights are 0.01, that of RNODE's authors for images; no other was run",)
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        "unregularized": RegularizerConfig(),
        "RNODE": RegularizerConfig("rnode", 0.01),
        "R_2": RegularizerConfig("r2", 0.01),
        "RNODE, Augmented": RegularizerConfig("rnode", 0.01, quadrature="augmented"),
        "R_2, Augmented": RegularizerConfig("r2", 0.01, quadrature="augmented"),
    }
    rows = (
        *((arm, steps) for arm in ("unregularized", "RNODE", "R_2") for steps in GRIDS),
        ("RNODE, Augmented", 8),
        *(("R_2, Augmented", steps) for steps in (8, None)),
    )
    smoke_rows = (("RNODE", 8), ("R_2, Augmented", 8))
    beside = TIGHT

    def defaults(self, scale: str) -> TrainConfig:
        """As for the figures on MNIST, for a third of the epochs: some rows take long."""
        shared = mnist_sweep.config(scale)
        return shared if scale != "laptop" else dataclasses.replace(shared, epochs=NUM_EPOCHS)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """The costs of R_2 next to those of RNODE, and its savings."""
        count = count_in(numbers)
        nfe, nfe_rnode = (ratios(numbers, count, arm) for arm in ("R_2", "RNODE"))
        loss, loss_rnode = (ratios(numbers, "loss", arm) for arm in ("R_2", "RNODE"))
        to_rnode, loss_to_rnode = (
            ratios(numbers, name, "R_2", "RNODE", steps=8) for name in (count, "loss")
        )
        return [
            *time_claims(numbers, 8, 1.7, "0.61 h and 0.37 h, on 8 steps"),
            time_claim(
                "With an adaptive solver, regularized training takes 30 to 50 % longer",
                ratios(numbers, "seconds", "R_2, Augmented"),
                "30 to 50 % in the conclusions; 2.56 h and 1.71 h, 1.50 times, in the table",
                words="{} with Augmented, as in the paper",
                at_least=1.2,
                at_most=1.7,
            ),
            takes_no_longer(numbers, "it"),
            fewer_claim(
                "R_2 lowers the number of evaluations",
                "110 to 104, 5 % fewer",
                f"{spread(percent_fewer(nfe))} % fewer for {spread(percent_more(loss))} % more "
                f"test loss (RNODE {spread(percent_fewer(nfe_rnode))} % for "
                f"{spread(percent_more(loss_rnode))} %)",
                nfe,
            ),
            fewer_claim(
                "It lowers it by more than RNODE does, on 8 steps",
                "better test-time NFE: 104 and 110",
                f"{spread(to_rnode)} of the evaluations of RNODE, for {spread(loss_to_rnode)} of "
                "its test loss",
                to_rnode,
                "evaluations of R_2 over RNODE",
            ),
            time_claim(
                "A fixed grid makes regularized training faster than unregularized training with "
                "an adaptive solver",
                row_ratios(numbers, "seconds", ("R_2, Augmented", 8), ("unregularized", None)),
                "0.61 h and 1.71 h, on 8 steps",
                about="time on the grid over adaptive",
                words="{} with Augmented, as in the paper, on 8 steps",
                at_most=0.97,
            ),
        ]
