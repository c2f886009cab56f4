"""Trade-offs of loss and evaluations over weights, with their spread over seeds."""

import dataclasses
from collections.abc import Sequence

from .arms import Arm
from .chart import Line
from .selection import chosen_on_other_seeds, Saving
from .statistics import deviation, mean
from .study import Numbers


NUM_LEVELS = 51
REMARK = (
    "The fronts that are drawn take the best weight at each loss, by the same runs; claims choose "
    "weights on other seeds"
)
# The splits in words.
SPLITS = {"train": "training", "test": "test"}


@dataclasses.dataclass(frozen=True)
class WeightFront:
    """Evaluations and losses of all weights, the unregularized runs first.

    - `weights`: in increasing order, 0 for none.
    - `nfe`, `loss`: for each weight, by seed; failed runs are missing. Seeds are strings, as they
        are keys of JSON objects.
    """

    weights: list[float]
    nfe: list[dict[str, float]]
    loss: list[dict[str, float]]

    def extra(self) -> list[dict[str, float]]:
        """The increase of the loss over the unregularized run of the seed, as a share of it."""
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
        """The largest increase of the loss for any weight, as a mean over seeds."""
        return max(mean(x.values()) for x in self.extra() if x)

    def marks(self, label: str, color: int, *, crosses: bool = True) -> list[Line]:
        """The front as a line with a band, and the weights as dots: evaluations and percent.

        The front is the fewest evaluations within a loss, by the best weight of each seed, as a
        mean over seeds. The band and the error bars are standard deviations.
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
        # The front begins at the unregularized runs.
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

    def within(self, extra: float) -> Saving:
        """The saving by the best weight that raises the loss by at most the share `extra`.

        For each seed, the weight is chosen on the other seeds: it has the fewest evaluations among
        the weights whose mean loss there is within the bound.
        """
        seeds = self._seeds()
        chosen = chosen_on_other_seeds(seeds, lambda others: self._best(others, extra))
        # The run of the seed itself may have failed.
        known = {seed: i for seed, i in chosen.items() if seed in self.loss[i]}
        return Saving(
            {seed: self.weights[i] for seed, i in known.items()},
            {seed: self.nfe[i][seed] / self.nfe[0][seed] for seed, i in known.items()},
            {seed: self.extra()[i][seed] for seed, i in known.items()},
        )

    def _best(self, seeds: Sequence[str], extra: float) -> int:
        """The index of the weight with the fewest evaluations within a loss, on some seeds."""

        def over_seeds(i: int) -> tuple[float, float]:
            known = [seed for seed in seeds if seed in self.loss[i]]
            plain = mean(self.loss[0][seed] for seed in known)
            more = (mean(self.loss[i][seed] for seed in known) - plain) / abs(plain)
            return mean(self.nfe[i][seed] / self.nfe[0][seed] for seed in known), more

        both = {i: over_seeds(i) for i in range(len(self.weights))}
        # The unregularized runs are always within the bound. Comparisons with NaN are false.
        return min((i for i, (_, more) in both.items() if more <= extra), key=lambda i: both[i][0])

    def area(self, reach: float = 0.5) -> dict[str, float]:
        """The mean evaluations along the front, relative to the unregularized ones, by seed.

        The front goes up to a loss that is larger than the unregularized one by the share `reach`.
        At each loss the best weight counts, which is found on the same runs. So areas of fronts can
        be compared only if they have equally many weights. Lower is better. Seeds without
        regularized runs are left out.
        """
        return {
            seed: mean(self._least(seed, level) for level in _levels(reach)) / self.nfe[0][seed]
            for seed in self._seeds()
        }

    def _seeds(self) -> list[str]:
        return [seed for seed in self.loss[0] if any(seed in loss for loss in self.loss[1:])]

    def _least(self, seed: str, level: float) -> float:
        """The fewest evaluations of a run of a seed whose loss is at most `level` larger."""
        return min(
            nfe[seed]
            for nfe, extra in zip(self.nfe, self.extra(), strict=True)
            # A run is within its own increase of the loss, in spite of rounding.
            if seed in extra and extra[seed] <= level + 1e-12
        )


def _levels(reach: float) -> list[float]:
    return [reach * i / (NUM_LEVELS - 1) for i in range(NUM_LEVELS)]


def front_of(
    arms: Sequence[Arm], *, loss: str = "train_loss", evaluation: str | None = None
) -> Numbers:
    """The front of some arms, as values of JSON."""

    def by_word(values: dict[int, float]) -> dict[str, float]:
        return {str(seed): value for seed, value in values.items()}

    return dataclasses.asdict(
        WeightFront(
            [arm.weight for arm in arms],
            [by_word(arm.values("test_nfe", evaluation)) for arm in arms],
            [by_word(arm.values(loss)) for arm in arms],
        )
    )
