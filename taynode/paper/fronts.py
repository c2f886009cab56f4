"""Trade-offs of loss and evaluations over weights, with their spread over seeds."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from .arms import Arm
from .chart import Line
from .statistics import deviation, mean, spread
from .study import seeds_agree


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

    def within(self, extra: float) -> tuple[float, list[float]]:
        """The best weight for at most so much more loss, and what it saves, for each seed.

        One weight for all seeds, by the means over those that have it; its evaluations are the
        fewest, and the saving is a share of the unregularized ones.
        """
        best, saved = 0.0, [0.0 for _ in self.loss[0]]
        for weight, nfe, loss in zip(self.weights, self.nfe, self.loss, strict=True):
            seeds = [seed for seed in loss if seed in self.loss[0]]
            plain = mean(self.loss[0][seed] for seed in seeds)
            is_cheap = mean(loss[seed] for seed in seeds) <= plain + extra * abs(plain)
            saves = [1 - nfe[seed] / self.nfe[0][seed] for seed in seeds]
            if is_cheap and mean(saves) > mean(saved):
                best, saved = weight, saves
        return best, saved

    def area(self) -> dict[str, float]:
        """The mean evaluations that losses up to a bound need, relative to none, by seed.

        The bound is half as much again as the loss without regularization, and for each loss the
        best of all weights counts. Lower is better. Seeds without regularized runs have none.
        """
        return {
            seed: self._area(seed)
            for seed in self.loss[0]
            if any(seed in loss for loss in self.loss[1:])
        }

    def _area(self, seed: str) -> float:
        plain = self.loss[0][seed]
        bounds = [plain + 0.01 * i * abs(plain) * (1 + 1e-12) for i in range(51)]
        return mean(self._least(seed, bound) for bound in bounds) / self.nfe[0][seed]

    def _least(self, seed: str, bound: float) -> float:
        """The fewest evaluations of a run with that seed whose loss is within a bound."""
        return min(
            nfe[seed]
            for nfe, loss in zip(self.nfe, self.loss, strict=True)
            if seed in loss and loss[seed] <= bound
        )


def save_the_same(a: Sequence[float], b: Sequence[float], *, within: float = 0.15) -> bool | None:
    """Whether two fronts save about as much, seed by seed; no answer if one saves nothing."""
    if not all(min(saved, default=0.0) > 0 for saved in (a, b)):
        return None
    return seeds_agree([x - y for x, y in zip(a, b, strict=True)], at_least=-within, at_most=within)


def in_words(found: tuple[float, list[float]]) -> str:
    """What is saved, in percent, and with which weight."""
    weight, saved = found
    return f"{spread([100 * x for x in saved])} % (weight {weight:g})"


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
