"""Trade-offs of loss and evaluations over weights, with their spread over seeds."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from .arms import Arm
from .chart import Line
from .statistics import deviation, mean


@dataclasses.dataclass(frozen=True)
class Front:
    """Evaluations and losses of all weights, the unregularized runs first.

    - `weights`: in increasing order, 0 for none.
    - `nfe`, `loss`: for each weight, by seed; runs that failed are not there. Seeds are words, as
        they are in files.
    """

    weights: list[float]
    nfe: list[dict[str, float]]
    loss: list[dict[str, float]]

    def line(self, label: str, color: int) -> Line:
        """Means as a line, standard deviations as crosses."""
        nfe, loss = ([list(x.values()) for x in values] for values in (self.nfe, self.loss))
        return Line(
            [mean(x) for x in nfe],
            [mean(x) for x in loss],
            label,
            color,
            x_error=[deviation(x) for x in nfe],
            y_error=[deviation(x) for x in loss],
        )

    def least(self, seed: str, bound: float) -> float:
        """The fewest evaluations of a run with that seed whose loss is within a bound."""
        return min(
            nfe[seed]
            for nfe, loss in zip(self.nfe, self.loss, strict=True)
            if seed in loss and loss[seed] <= bound
        )

    def at_extra_loss(self, extra: float) -> list[float]:
        """For each seed, the share of evaluations saved for at most so much more loss."""
        return [
            1 - self.least(seed, loss + extra * abs(loss)) / self.nfe[0][seed]
            for seed, loss in self.loss[0].items()
        ]

    def area(self) -> list[float]:
        """For each seed, the mean evaluations that losses up to a bound need, relative to none.

        The bound is half as much again as the loss without regularization. Lower is better.
        """
        areas = []
        for seed, loss in self.loss[0].items():
            bounds = [loss + 0.01 * i * abs(loss) * (1 + 1e-12) for i in range(51)]
            areas.append(mean(self.least(seed, bound) for bound in bounds) / self.nfe[0][seed])
        return areas


def front_of(
    arms: Sequence[Arm], *, loss: str = "train_loss", evaluation: str | None = None
) -> dict[str, Any]:
    """The front of some arms, as plain data."""

    def by_word(values: dict[int, float]) -> dict[str, float]:
        return {str(seed): value for seed, value in values.items()}

    return dataclasses.asdict(
        Front(
            [arm.weight for arm in arms],
            [by_word(arm.values("test_nfe", evaluation)) for arm in arms],
            [by_word(arm.values(loss)) for arm in arms],
        )
    )
