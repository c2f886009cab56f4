"""The rule by which claims hold."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from .statistics import CONFIDENCE, mean_interval


HOLDS, FAILS, UNDECIDED = VERDICTS = ("holds", "does not hold", "undecided")
RULE = (
    f"Each seed gives one number, which compares runs of that seed. The interval is the two-sided "
    f"{CONFIDENCE:.0%} Student interval of its mean over seeds, taken of logarithms where the "
    "number is a ratio. A claim holds if the interval lies wholly on the right side of the "
    "threshold, does not hold if it lies wholly on the wrong side, and is undecided otherwise."
)


@dataclasses.dataclass(frozen=True)
class Bound:
    """A threshold for the mean over seeds of a number; `ratio` and `number` make one.

    - `about`: the number, in words.
    - `values`: its value for each seed.
    - `at_least`, `at_most`: the thresholds.
    - `scale`: `"log"` for ratios, whose logarithms are averaged; `"plain"` for all else.
    - `resolution`: the smallest difference that the measurement can resolve, relative for ratios.
        The interval gets longer by it at both ends.
    """

    about: str
    values: Sequence[float]
    at_least: float
    at_most: float
    scale: Literal["log", "plain"]
    resolution: float = 0.0

    def interval(self) -> tuple[float, float] | None:
        """The interval of the mean.

        `None` for fewer than two seeds, if a value is not finite, or if a ratio is not positive.
        """
        if self.scale == "plain":
            found = mean_interval(self.values)
            return found and (found[0] - self.resolution, found[1] + self.resolution)
        if not all(x > 0 for x in self.values):
            return None
        found, longer = mean_interval(map(math.log, self.values)), 1 + self.resolution
        return found and (math.exp(found[0]) / longer, math.exp(found[1]) * longer)

    def is_kept(self) -> bool | None:
        """Whether the interval lies wholly within the thresholds; `None` if it crosses one."""
        found = self.interval()
        if found is None:
            return None
        low, high = found
        if self.at_least <= low and high <= self.at_most:
            return True
        return False if high < self.at_least or low > self.at_most else None

    def in_words(self) -> str:
        """The interval and the number of seeds."""
        found, count = self.interval(), len(self.values)
        if found is None:
            return f"{self.about}: none, n = {count}"
        return f"{self.about}: {found[0]:.4g} to {found[1]:.4g}, n = {count}"


def ratio(
    about: str,
    values: Iterable[float],
    *,
    at_least: float = 0.0,
    at_most: float = math.inf,
    resolution: float = 0.0,
) -> Bound:
    """A bound on a ratio of two runs of the same seed."""
    return Bound(about, list(values), at_least, at_most, "log", resolution)


def number(
    about: str,
    values: Iterable[float],
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> Bound:
    """A bound on a number that is not a ratio: a difference, rank correlation, share or slope."""
    return Bound(about, list(values), at_least, at_most, "plain")


def reached(about: str, values: Iterable[bool]) -> Bound:
    """A bound that is kept if something is so for every seed, and broken if it is so for none."""
    return number(f"share of seeds with {about}", map(float, values), at_least=1.0)


def verdict(bounds: Iterable[Bound]) -> str:
    """A claim holds if all bounds are kept, and does not hold if one is broken."""
    answers = [bound.is_kept() for bound in bounds]
    if False in answers:
        return FAILS
    return UNDECIDED if None in answers or not answers else HOLDS


def by_chance(claims: Sequence[Mapping[str, str | bool]]) -> str:
    """A sentence on the number of claims that chance alone would decide."""
    judged = [claim for claim in claims if claim.get("interval")]
    if not judged:
        return ""
    many = "" if len(judged) == 1 else "s"
    return (
        f"Of {len(judged)} claim{many} judged by such intervals, chance alone would decide about "
        f"{(1 - CONFIDENCE) * len(judged):.1f} if every true value lay exactly on its threshold, "
        "half in favor of the claim and half against it. The farther a true value is from its "
        "threshold, the rarer is a wrong verdict. A claim with several thresholds holds by chance "
        "less often and fails by chance more often. Claims that share runs err together, and with "
        "three seeds the interval relies on the numbers being close to normal."
    )
