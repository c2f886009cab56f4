"""Beside Figure 9: which order of the penalty makes a solver of order 5 cheaper."""

import dataclasses
from typing import ClassVar

from ..config import RegularizerConfig, TrainConfig
from .fig9_taylor import FIFTH_ORDER
from .statistics import spread
from .study import Claim, judged, Numbers
from .table_rows import column, ratios, row_ratios
from .tables import AbstractTable
from .verdicts import ratio


GIVEN = "unregularized"
# Dopri5 at 1.4e-8, a mean over seeds, in the runs of Figure 9.
NEED = 98.0
# The paper's own share, 68 of 92 evaluations, and less.
SHARES = (0.74, 0.6)
ORDERS = (2, 3, 4, 5, 6)
NEAR = 0.05
# A fit is as good with at most twice the error.
MOST_ERROR = 2.0


def row_of(order: int, share: float) -> str:
    """The name of a row."""
    return f"R_{order}, budget {share:g}"


class ToyOrders(AbstractTable):
    """The toy problem, with R_2 to R_6 and budgets for Dopri5."""

    name = "fig9-orders"
    title = "The order that makes a solver of order 5 cheaper on the toy problem"
    num_seeds = 5
    task = "toy"
    unit = "mean square error"
    columns: ClassVar[dict[str, str]] = {"seconds": "train_seconds", "loss": "test_loss"} | {
        "NFE": "test_nfe"
    }
    arms: ClassVar[dict[str, RegularizerConfig]] = {
        GIVEN: RegularizerConfig(),
        **{
            row_of(order, share): RegularizerConfig(f"r{order}", budget=share * NEED)
            for share in SHARES
            for order in ORDERS
        },
    }
    rows = tuple((arm, None) for arm in arms)
    smoke_rows = (rows[0], rows[4])

    def defaults(self, scale: str) -> TrainConfig:
        """The settings of the toy problem, with the evaluation of Figure 9."""
        config = super().defaults(scale)
        if scale == "smoke":
            return config
        return dataclasses.replace(config, evaluation=FIFTH_ORDER.solve)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """What each order reaches, and R_5 beside R_6 at the same budget."""
        return [
            *(self._reached(numbers, order) for order in ORDERS),
            self._beside(numbers),
        ]

    def _reached(self, numbers: Numbers, order: int) -> Claim:
        row = row_of(order, SHARES[0])
        nfe, error = (ratios(numbers, name, row) for name in ("NFE", "loss"))
        counts = list(column(numbers, row, None, "NFE").values())
        return judged(
            f"With R_{order}, a solver of order 5 needs a quarter fewer evaluations for the same "
            "fit",
            "92 to 68, 26 % fewer" if order == 6 else "",
            f"{spread(nfe)} of the evaluations ({spread(counts)}), for {spread(error)} times the "
            "error"
            if nfe
            else "-",
            ratio("evaluations with over without", nfe, at_most=0.78),
            ratio("error with over without", error, at_most=MOST_ERROR),
            rule=f"at most 0.78 of them, for at most {MOST_ERROR:g} times the error",
            is_ours=order != 6,
        )

    def _beside(self, numbers: Numbers) -> Claim:
        """Dopri5 estimates its error to order 5, and R_6 leaves the fifth derivative free."""
        found = {
            share: row_ratios(numbers, "loss", *((row_of(k, share), None) for k in (5, 6)))
            for share in SHARES
        }
        counts = {
            share: row_ratios(numbers, "NFE", *((row_of(k, share), None) for k in (5, 6)))
            for share in SHARES
        }
        return judged(
            "R_5 suits a solver of order 5 better than R_6",
            "",
            "; ".join(
                f"{spread(errors) if errors else '-'} times the error at {share:g} of the "
                "evaluations"
                for share, errors in found.items()
            ),
            *(
                ratio(f"error of R_5 over R_6 at {share:g}", errors, at_most=1.0)
                for share, errors in found.items()
            ),
            *(
                ratio(
                    f"evaluations of R_5 over R_6 at {share:g}",
                    of_both,
                    at_least=1 - NEAR,
                    at_most=1 + NEAR,
                )
                for share, of_both in counts.items()
            ),
            rule=f"less error at both budgets, which both keep within {NEAR:.0%} of each other",
            is_ours=True,
        )
