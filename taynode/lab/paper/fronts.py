"""Trade-offs of loss and evaluations over weights, with their spread over seeds."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from .arms import Arm
from .chart import Line
from .statistics import deviation, mean, spread
from .study import seeds_agree


NUM_LEVELS = 51
# In words.
SPLITS = {"train": "training", "test": "test"}


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

    def extra(self) -> list[dict[str, float]]:
        """How much more than the unregularized run of its seed each run loses, as a share of it."""
        plain = self.loss[0]
        return [
            {
                seed: (x - plain[seed]) / abs(plain[seed])
                for seed, x in loss.items()
                if seed in plain
            }
            for loss in self.loss
        ]

    def reach(self) -> float:
        """The most that any weight loses, as a mean over seeds."""
        return max(mean(x.values()) for x in self.extra() if x)

    def marks(self, label: str, color: int, *, crosses: bool = True) -> list[Line]:
        """The front with a band, and the weights it is made of as dots: evaluations and percent.

        The front is the fewest evaluations for at most so much more loss, as a mean over seeds; the
        band, and the crosses of dots, are standard deviations.
        """
        known = [(nfe, extra) for nfe, extra in zip(self.nfe, self.extra(), strict=True) if extra]
        nfe = [[nfe[seed] for seed in extra] for nfe, extra in known]
        percent = [[100 * x for x in extra.values()] for _, extra in known]
        levels = _levels(max(0.0, self.reach()))
        fewest = [[self._least(seed, level) for seed in self._seeds()] for level in levels]
        dots = Line(
            [mean(x) for x in nfe],
            [mean(x) for x in percent],
            color=color,
            joined=False,
            x_error=[deviation(x) for x in nfe] if crosses else (),
            y_error=[deviation(x) for x in percent] if crosses else (),
        )
        # From what there is without regularization.
        fewest = [[self.nfe[0][seed] for seed in self._seeds()], *fewest]
        front = Line(
            [mean(x) for x in fewest],
            [100 * level for level in (0.0, *levels)],
            label,
            color,
            dots=False,
            x_band=[deviation(x) for x in fewest],
        )
        return [front, dots]

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

    def area(self, reach: float = 0.5) -> dict[str, float]:
        """The mean evaluations that losses up to a bound need, relative to none, by seed.

        The bound is that share more than the loss without regularization, and for each loss the
        best of all weights counts. Lower is better. Seeds without regularized runs have none.
        """
        return {
            seed: mean(self._least(seed, level) for level in _levels(reach)) / self.nfe[0][seed]
            for seed in self._seeds()
        }

    def _seeds(self) -> list[str]:
        return [seed for seed in self.loss[0] if any(seed in loss for loss in self.loss[1:])]

    def _least(self, seed: str, level: float) -> float:
        """The fewest evaluations of a run with that seed that loses at most so much more."""
        return min(
            nfe[seed]
            for nfe, extra in zip(self.nfe, self.extra(), strict=True)
            # As much is at most, whatever is rounded.
            if seed in extra and extra[seed] <= level + 1e-12
        )


def _levels(reach: float) -> list[float]:
    return [reach * i / (NUM_LEVELS - 1) for i in range(NUM_LEVELS)]


def is_lowest(others: Iterable[Sequence[float]], *, margin: float) -> bool | None:
    """Whether something is less than all others, given these relative to it, each by seed.

    No answer if it is so close to one of them, or if seeds differ.
    """
    others = list(others)
    if not others:
        return None
    if any(seeds_agree(x, at_most=1 / (1 + margin)) for x in others):
        return False
    return True if all(seeds_agree(x, at_least=1 + margin) for x in others) else None


def save_the_same(a: Sequence[float], b: Sequence[float], *, within: float = 0.1) -> bool | None:
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
