"""Choices among weights that never see the seed they are reported on."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from .statistics import spread
from .verdicts import Bound, number


Seed = TypeVar("Seed")
Choice = TypeVar("Choice")


def chosen_on_other_seeds(
    seeds: Iterable[Seed], choose: Callable[[list[Seed]], Choice]
) -> dict[Seed, Choice]:
    """What `choose` picks for each seed, given all the other seeds.

    The best of several weights looks better than it is on the runs that it was chosen by. So it is
    chosen on the other seeds, and reported on the one that was left out. A single seed has no
    others: nothing can be chosen, and the result is empty.
    """
    seeds = list(seeds)
    if len(seeds) < 2:
        return {}
    return {seed: choose([x for x in seeds if x != seed]) for seed in seeds}


def choices_in_words(weights: Iterable[float]) -> str:
    """The weights that were chosen for the seeds, each once."""
    found = " or ".join(f"{weight:g}" for weight in sorted(set(weights)))
    return f"weight {found}" if found else "no other seeds to choose a weight on"


class Saving(NamedTuple):
    """What weights that were chosen on other seeds save and cost, by seed.

    - `weights`: which weight was chosen.
    - `nfe`: its evaluations, relative to the unregularized ones.
    - `extra`: how much more it loses, as a share of the unregularized loss.
    """

    weights: dict[str, float]
    nfe: dict[str, float]
    extra: dict[str, float]

    def in_words(self) -> str:
        """What is saved, and what it costs."""
        saved = spread([100 * (1 - x) for x in self.nfe.values()])
        paid = spread([100 * x for x in self.extra.values()])
        return f"{saved} % for {paid} % ({choices_in_words(self.weights.values())})"

    def like(self, other: "Saving", about: str, *, within: float = 0.1) -> Bound:
        """That another saving is about the same, as a share of the unregularized evaluations.

        There is nothing to compare if one of them saves nothing.
        """
        saves = all(x < 1 for saving in (self, other) for x in saving.nfe.values())
        seeds = [seed for seed in self.nfe if saves and seed in other.nfe]
        apart = [other.nfe[seed] - self.nfe[seed] for seed in seeds]
        return number(about, apart, at_least=-within, at_most=within)
