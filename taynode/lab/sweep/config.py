"""The settings of a sweep, as a TOML file has them. This module does not import JAX."""

import dataclasses
import itertools
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ...registry import one_of
from ..config import ConfigError, from_dict, NO_REGULARIZER, positive, SCALES, to_dict, TrainConfig
from ..files import Json
from ..flags import FLAGS, merged, nested
from .plan import Job


# The values of the settings of one run, by their names.
Choice: TypeAlias = dict[str, Any]

TABLES = ("settings", "grid", "search")
RANGE = {"low", "high", "log"}
# Of training data, so that test data tell how good the chosen settings are.
OBJECTIVES = ("train_nfe", "train_loss")
# The numbers that the last row of a run may have, see `Training.row`. Each split may have further
# metrics, which depend on the task.
METRICS = (
    *(f"{split}_{name}" for split in ("train", "test") for name in ("nfe", "loss", "error")),
    *("valid_loss", "r2", "r3", "kinetic", "jacobian", "penalty", "weight", "training_nfe"),
    *("train_seconds", "seconds_per_step", "compile_seconds", "forward_seconds"),
)
REGULARIZER = "regularizer.name"
STRENGTHS = {"regularizer.weight", "regularizer.budget"}


@dataclasses.dataclass(frozen=True)
class Range:
    """The values from `low` to `high`, both included; by their logarithms if `log`."""

    low: int | float
    high: int | float
    log: bool = False


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """A search by Optuna.

    - `space`: the choices or the range of each setting.
    - `trials`: the number of trials.
    - `seed`: the seed of the search.
    """

    space: dict[str, tuple | Range]
    trials: int
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class SweepConfig:
    """A sweep: a grid, or a search.

    - `name`: its name, for its files.
    - `task`, `scale`, `seeds`: the task and the scale of the runs, and the seeds of each choice.
    - `settings`: the settings that all runs share, by their names.
    - `grid`: the values of each setting of a grid.
    - `search`: the search, instead of a grid.
    - `objectives`: the metrics to minimize, evaluations and a loss, as means over the seeds.
    """

    name: str
    task: str
    scale: str
    seeds: tuple[int, ...]
    settings: Choice
    grid: dict[str, tuple]
    search: SearchConfig | None = None
    objectives: tuple[str, str] = OBJECTIVES

    def choices(self) -> list[Choice]:
        """The points of the grid."""
        return [
            dict(zip(self.grid, values, strict=True))
            for values in itertools.product(*self.grid.values())
        ]

    def jobs(self, choice: Mapping[str, Any], defaults: TrainConfig) -> list[Job]:
        """The runs of a choice, one for each seed. `defaults` are those of the task."""
        by_path = {
            path: value
            for name, value in {**self.settings, **choice}.items()
            for path in paths_of("settings", name)
        }
        values = merged(to_dict(defaults), nested(by_path))
        return [Job(from_dict(TrainConfig, {**values, "seed": seed})) for seed in self.seeds]

    def check_regularizer(self, defaults: TrainConfig) -> None:
        """Raise a `ConfigError` if weights are varied but there is no regularizer."""
        varied = self.search.space if self.search else self.grid
        paths = {path: name for name in varied for path in paths_of("", name)}
        if not STRENGTHS & paths.keys() or REGULARIZER in paths:
            return
        given = {path: self.settings[name] for name in self.settings for path in paths_of("", name)}
        if given.get(REGULARIZER, defaults.regularizer.name) == NO_REGULARIZER:
            name = next(paths[path] for path in paths if path in STRENGTHS)
            raise ConfigError(
                f"`{name}` changes nothing without a regularizer: add one to `settings`, such as "
                'regularizer = "r2".'
            )


def read_sweep(name: str, values: Json, *, task: str | None = None) -> SweepConfig:
    """The settings of a sweep from the contents of a TOML file.

    `task` is a task that the user has named, which replaces that of the file.
    """
    allowed = ("task", "scale", "seeds", "objectives", *TABLES)
    for key in values:
        one_of(name, key, allowed)
    for table in TABLES:
        if not isinstance(values.get(table, {}), dict):
            raise ConfigError(f"`{table}` must be a table, got {values[table]!r}.")
    if ("grid" in values) == ("search" in values):
        raise ConfigError(f"`{name}` needs a table `grid` or a table `search`, and not both.")
    task = task or values.get("task")
    if not isinstance(task, str):
        raise ConfigError(f'`{name}` needs a task, such as task = "digits".')
    scale = values.get("scale", "laptop")
    one_of("scale", scale, SCALES)
    objectives = values.get("objectives", OBJECTIVES)
    if not _is_list_of(objectives, str) or len(objectives) != 2:
        raise ConfigError(f"`objectives` must be two names of metrics, got {objectives!r}.")
    for objective in objectives:
        if not objective.startswith(("train_", "test_")):
            one_of("objectives", objective, METRICS)
    search = _search(values["search"]) if "search" in values else None
    return SweepConfig(
        name,
        task,
        scale,
        _seeds(values.get("seeds", 1)),
        {key: _checked("settings", key, x) for key, x in flat(values.get("settings", {})).items()},
        {key: _choices("grid", key, x) for key, x in flat(values.get("grid", {})).items()},
        search,
        tuple(objectives),
    )


def paths_of(where: str, name: str) -> tuple[str, ...]:
    """The settings of a name: a flag of `taynode train`, or the dotted name of a setting."""
    if name in FLAGS:
        return FLAGS[name]
    one_of(where, name, [*FLAGS, *_settings(TrainConfig)])
    return (name,)


def flat(table: Json, where: str = "") -> Json:
    """A nested table by dotted names. A table with the keys of a range is a value."""
    out = {}
    for key, value in table.items():
        name = f"{where}.{key}" if where else key
        if isinstance(value, dict) and not value.keys() & RANGE:
            out |= flat(value, name)
        else:
            out[name] = value
    return out


def _settings(kind: type, where: str = "") -> list[str]:
    """The dotted names of all settings that runs of a sweep may differ in."""
    names = []
    for name, hint in typing.get_type_hints(kind).items():
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            names += _settings(hint, f"{where}{name}.")
        elif where or name not in ("task", "scale", "seed"):
            names.append(f"{where}{name}")
    return names


def _search(values: Json) -> SearchConfig:
    for key in values:
        one_of("search", key, ("space", "trials", "seed"))
    for key, default in {"trials": None, "seed": 0}.items():
        if type(values.get(key, default)) is not int:
            raise ConfigError(f"`search.{key}` must be int, got {values.get(key)!r}.")
    positive("search.trials", values["trials"])
    space = values.get("space")
    if not isinstance(space, dict) or not space:
        raise ConfigError("`search.space` must be a table with choices or ranges of settings.")
    return SearchConfig(
        {name: _choices_or_range(name, value) for name, value in flat(space).items()},
        values["trials"],
        values.get("seed", 0),
    )


def _choices_or_range(name: str, value: Any) -> tuple | Range:
    where = "search.space"
    if not isinstance(value, dict):
        choices = _choices(where, name, value)
        if any(isinstance(choice, list) for choice in choices):
            raise ConfigError(f"`{where}.{name}`: Optuna cannot choose among lists.")
        return choices
    for key in value:
        one_of(f"{where}.{name}", key, sorted(RANGE))
    low, high, log = (value.get(key, False) for key in ("low", "high", "log"))
    if not all(type(x) in (int, float) for x in (low, high)) or type(log) is not bool:
        raise ConfigError(f"`{where}.{name}` must have numbers low and high, got {value!r}.")
    if not low < high or (log and low <= 0):
        raise ConfigError(
            f"`{where}.{name}`: low must be less than high, and positive if log; got {value!r}."
        )
    return Range(_coerced(where, name, low), _coerced(where, name, high), log)


def _choices(where: str, name: str, values: Any) -> tuple:
    if not isinstance(values, list) or not values:
        raise ConfigError(f"`{where}.{name}` must be a list of values, got {values!r}.")
    return tuple(_checked(where, name, value) for value in values)


def _checked(where: str, name: str, value: Any) -> Any:
    _coerced(where, name, value)
    return value


def _coerced(where: str, name: str, value: Any) -> Any:
    """The value as its setting has it. It must be valid if all other settings are defaults."""
    paths = paths_of(where, name)
    try:
        config = from_dict(TrainConfig, nested(dict.fromkeys(paths, value)))
    except ValueError as error:
        raise ConfigError(f"`{where}.{name}`: {error}") from None
    for part in paths[0].split("."):
        config = getattr(config, part)
    return config


def _seeds(value: Any) -> tuple[int, ...]:
    if type(value) is int:
        positive("seeds", value)
        return tuple(range(value))
    if not _is_list_of(value, int) or not value or len(set(value)) < len(value):
        raise ConfigError(f"`seeds` must be a number or a list of different seeds, got {value!r}.")
    return tuple(value)


def _is_list_of(value: Any, kind: type) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and all(type(each) is kind for each in value)
