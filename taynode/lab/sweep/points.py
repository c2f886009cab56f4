"""The points of a sweep: what each choice of settings gave, and the front of the best ones."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from ...registry import one_of
from ..config import ConfigError, TrainConfig
from ..files import Json
from .config import Choice, SweepConfig
from .plan import Job
from .results import has_failed, Result


# Further columns, if the runs have them.
SHOWN = ("test_nfe", "test_loss", "test_error", "train_seconds")


@dataclasses.dataclass(frozen=True)
class Point:
    """What the runs of one choice gave.

    - `choice`: the settings.
    - `num_seeds`, `num_failed`: the number of runs, and of those that failed or are missing.
    - `values`: the objectives and other metrics, as means over the runs that did not fail.
    """

    choice: Choice
    num_seeds: int
    num_failed: int
    values: dict[str, float]


def check_objectives(config: SweepConfig, result: Result | None) -> None:
    """Raise an error unless a run has the objectives, or no numbers at all."""
    if result is not None and not has_failed(result):
        for name in config.objectives:
            one_of("objectives", name, result["row"])


def point_of(config: SweepConfig, choice: Choice, results: Sequence[Result | None]) -> Point:
    """The point of a choice, from the results of its runs."""
    for result in results:
        check_objectives(config, result)
    rows = [result["row"] for result in results if result is not None and not has_failed(result)]
    names = [*config.objectives, *(name for name in SHOWN if all(name in row for row in rows))]
    values = {name: sum(row[name] for row in rows) / len(rows) for name in names} if rows else {}
    return Point(choice, len(results), len(results) - len(rows), values)


def points_of(
    config: SweepConfig,
    choices: Iterable[Choice],
    defaults: TrainConfig,
    results: Mapping[Job, Result],
) -> list[Point]:
    """The points of some choices."""
    points = []
    for choice in choices:
        try:
            jobs = config.jobs(choice, defaults)
        except ConfigError:
            # The values of a search fit each other or not.
            jobs = []
        points.append(point_of(config, choice, [results.get(job) for job in jobs]))
    return points


def front_of(points: Sequence[Point], objectives: tuple[str, str]) -> list[Point]:
    """The points that no other point beats in both objectives, by the first objective."""
    known = [p for p in points if p.values and all(math.isfinite(p.values[x]) for x in objectives)]
    known.sort(key=lambda point: [point.values[name] for name in objectives])
    front: list[Point] = []
    for point in known:
        if not front or point.values[objectives[1]] < front[-1].values[objectives[1]]:
            front.append(point)
    return front


def rows_of(points: Sequence[Point], objectives: tuple[str, str]) -> list[Json]:
    """The rows of a table of all points, best first. They have the same keys."""
    front = {id(point) for point in front_of(points, objectives)}
    names = list(dict.fromkeys(name for point in points for name in point.values))
    rows = [
        {
            **point.choice,
            "runs": point.num_seeds,
            "failed": point.num_failed,
            **{name: point.values.get(name) for name in names},
            "on the front": "yes" if id(point) in front else "",
        }
        for point in points
    ]
    return sorted(rows, key=lambda row: _order(row.get(objectives[0])))


def _order(value: float | None) -> float:
    return math.inf if value is None or math.isnan(value) else value
