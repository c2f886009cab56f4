"""Choices of weights, made on other seeds than those they are reported on."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from .statistics import percent_fewer, spread
from .verdicts import Bound, number


Seed = TypeVar("Seed")
Choice = TypeVar("Choice")


def chosen_on_other_seeds(
    seeds: Iterable[Seed], choose: Callable[[list[Seed]], Choice]
) -> dict[Seed, Choice]:
    """The choice for each seed, which `choose` makes on all other seeds.

    The best of several weights looks better than it is on the runs that it was chosen by. So it is
    chosen on the other seeds, and reported on the one that was left out. A single seed has no
    others, so the result is empty.
    """
    seeds = list(seeds)
    if len(seeds) < 2:
        return {}
    return {seed: choose([x for x in seeds if x != seed]) for seed in seeds}


def choices_in_words(weights: Iterable[float]) -> str:
    """All weights that were chosen."""
    found = " or ".join(f"{weight:g}" for weight in sorted(set(weights)))
    return f"weight {found}" if found else "no other seeds to choose a weight on"


class Saving(NamedTuple):
    """The saving and the price of weights that were chosen on other seeds, by seed.

    - `weights`: the weight that was chosen.
    - `nfe`: its evaluations, relative to the unregularized ones.
    - `extra`: the increase of the loss, as a share of the unregularized loss.
    """

    weights: dict[str, float]
    nfe: dict[str, float]
    extra: dict[str, float]

    def in_words(self) -> str:
        """The saving and its price in words."""
        saved = spread(percent_fewer(self.nfe.values()))
        paid = spread([100 * x for x in self.extra.values()])
        return f"{saved} % for {paid} % ({choices_in_words(self.weights.values())})"

    def like(self, other: "Saving", about: str, *, within: float = 0.1) -> Bound:
        """A bound on the difference of two savings, as shares of the unregularized evaluations.

        It has no values if one of the two saves nothing.
        """
        saves = all(x < 1 for saving in (self, other) for x in saving.nfe.values())
        seeds = [seed for seed in self.nfe if saves and seed in other.nfe]
        apart = [other.nfe[seed] - self.nfe[seed] for seed in seeds]
        return number(about, apart, at_least=-within, at_most=within)
