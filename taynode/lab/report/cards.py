"""The numbers at the top of the page, a card for each group."""

from collections.abc import Sequence
from typing import NamedTuple

from .formats import change, duration
from .groups import Group
from .headline import quality, show_quality


class Card(NamedTuple):
    """The numbers of a group; `bar` is in percent of the most expensive group."""

    label: str
    group: Group
    num_runs: int
    nfe: str
    change: str | None
    bar: float
    facts: list[tuple[str, str]]


def make_cards(groups: Sequence[Group]) -> list[Card]:
    """A card for each group."""
    means = [group.last("test_nfe").mean for group in groups]
    most = max([mean for mean in means if mean is not None], default=0.0)
    baselines = {group.task: group for group in reversed(groups) if group.is_baseline}
    return [
        _card(group, mean, most, baselines.get(group.task))
        for group, mean in zip(groups, means, strict=True)
    ]


def _card(group: Group, mean: float | None, most: float, baseline: Group | None) -> Card:
    name, value = quality(group)
    against = None
    if baseline is not None and baseline is not group and mean is not None:
        against = change(baseline.last("test_nfe").mean, mean)
    facts = [
        ("Test error" if name == "test_error" else "Test loss", show_quality(name, value)),
        ("Forward solve", duration(group.last("forward_seconds").mean)),
        ("Training", duration(group.last("train_seconds").mean)),
    ]
    bar = 100 * mean / most if mean is not None and most else 0.0
    nfe = group.last("test_nfe").text(1)
    return Card(group.title, group, len(group.runs), nfe, against, bar, facts)
