"""Groups: runs that differ only in their seed."""

import dataclasses
import json
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from ..files import Json
from .formats import fixed, is_number, number, setting, SPACE
from .runs import StoredRun


NUM_COLORS = 6
NAMES = {
    "none": "no regularizer",
    "kinetic": "kinetic energy",
    "jacobian": "Jacobian norm",
    "rnode": "RNODE",
    "directional": "directional derivative",
    "nfe": "expected evaluations",
    "error": "error estimate",
    "polynomial": "distance from a line",
    "decay": "weight decay",
    "spectral": "spectral norms",
}


class Summary(NamedTuple):
    """The mean over seeds; `std` is their standard deviation, if there are several."""

    mean: float | None
    std: float | None
    count: int

    def text(self, decimals: int | None = None) -> str:
        """The mean and the deviation, such as 27.4 or 27.4 ± 0.8."""
        show = number if decimals is None else lambda x: fixed(x, decimals)
        if self.std is None:
            return show(self.mean)
        return f"{show(self.mean)}{SPACE}\N{PLUS-MINUS SIGN}{SPACE}{show(self.std)}"


@dataclasses.dataclass(frozen=True)
class Group:
    """Runs of one configuration, with the label and color that they have everywhere."""

    label: str
    index: int
    color: str
    repeats_color: bool
    runs: tuple[StoredRun, ...]

    @property
    def key(self) -> str:
        """The name of the group within the page."""
        return f"group{self.index}"

    @property
    def title(self) -> str:
        """The label with a capital."""
        return self.label[:1].upper() + self.label[1:]

    @property
    def task(self) -> str:
        """The name of the task."""
        return str(self.runs[0].config.get("task", "unknown task"))

    @property
    def is_baseline(self) -> bool:
        """Whether the runs are unregularized."""
        return is_baseline(self.runs[0])

    def last(self, name: str) -> Summary:
        """A metric at the end of training, over all seeds."""
        return summarize([run.value(name) for run in self.runs])


def summarize(values: Sequence[float | None]) -> Summary:
    """The mean and deviation of the known values."""
    known = [value for value in values if value is not None and is_number(value)]
    if not known:
        return Summary(None, None, 0)
    std = statistics.stdev(known) if len(known) > 1 else None
    return Summary(statistics.fmean(known), std, len(known))


def is_baseline(run: StoredRun) -> bool:
    """Whether a run is known to be unregularized."""
    settings = run.regularizer
    is_free = settings.get("weight") == 0 and _limit(run) == ""
    return bool(settings) and (settings.get("name") == "none" or is_free)


def _limit(run: StoredRun) -> str:
    """What a weight is to keep, in words; empty if the weight is a number."""
    settings = run.regularizer
    if is_number(settings.get("budget")):
        return f" with a budget of {setting(settings['budget'])}"
    return f" within {settings['within']} of the loss" if settings.get("within") else ""


def regularizer_name(run: StoredRun) -> str:
    """The regularizer of a run in words, and what its weight is to keep."""
    if not run.regularizer:
        return run.name
    if is_baseline(run):
        return NAMES["none"]
    return in_words(str(run.regularizer.get("name", "?"))) + _limit(run)


def in_words(name: str) -> str:
    """The name of a regularizer for readers: `R_2` for `r2`."""
    is_order = name[:1] == "r" and name[1:].isdigit()
    return f"R_{name[1:]}" if is_order else NAMES.get(name, name)


def flatten(config: Json, prefix: str = "") -> Json:
    """Nested settings as a flat dictionary, with names such as `training.rtol`."""
    out: Json = {}
    for name, value in config.items():
        inner = flatten(value, f"{prefix}{name}.") if isinstance(value, dict) and value else None
        out |= {f"{prefix}{name}": value} if inner is None else inner
    return out


def group_runs(runs: Sequence[StoredRun]) -> list[Group]:
    """Groups in the order of their first runs; unregularized ones come first."""
    members: dict[str, list[StoredRun]] = {}
    for run in runs:
        config = {name: value for name, value in run.config.items() if name != "seed"}
        # A run without a configuration is a group of its own.
        key = json.dumps(config, sort_keys=True) if config else run.name
        members.setdefault(key, []).append(run)
    groups = sorted(members.values(), key=lambda group: not is_baseline(group[0]))
    labels = _labels([group[0] for group in groups])
    # The first color is a gray, for the unregularized group.
    first = 0 if is_baseline(groups[0][0]) else 1
    return [
        Group(label, i, *_look(first + i), tuple(group))
        for i, (label, group) in enumerate(zip(labels, groups, strict=True))
    ]


def _look(place: int) -> tuple[str, bool]:
    """A color, and whether another group has it, too. The gray is given once."""
    turn, color = divmod(place - 1, NUM_COLORS - 1)
    return ("g0", False) if place == 0 else (f"g{color + 1}", turn > 0)


def _labels(runs: list[StoredRun]) -> list[str]:
    """The name of the regularizer, and the settings that make it unique."""
    settings = [flatten(run.config) for run in runs]
    parts = [[regularizer_name(run)] for run in runs]
    names = {name: None for setting in settings for name in setting if name != "seed"}
    # The weight comes first, since it is varied most.
    for name in sorted(names, key=lambda name: name != "regularizer.weight"):
        values = [setting.get(name) for setting in settings]
        twins = [
            [j for j, part in enumerate(parts) if part == parts[i]] for i, _ in enumerate(parts)
        ]
        for i, others in enumerate(twins):
            if any(values[j] != values[i] for j in others):
                parts[i] = [*parts[i], f"{name.split('.')[-1]} {setting(values[i])}"]
    return [", ".join(part) for part in parts]
