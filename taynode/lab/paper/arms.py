"""Arms: runs that differ only in their seed."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...registry import derivative_order
from ..config import RegularizerConfig, TrainConfig
from ..sweep.plan import EvaluationConfig, Job
from ..sweep.results import Result


class MissingRuns(Exception):
    """Runs that a study needs have failed. The message says which."""


def defaults_of(task: str, scale: str) -> TrainConfig:
    """The default settings of a task."""
    from ..tasks.names import find_task

    return find_task(task).defaults(scale)


def jobs_of(
    config: TrainConfig,
    arms: Iterable[RegularizerConfig],
    seeds: Sequence[int],
    evaluations: tuple[EvaluationConfig, ...] = (),
    measurements: Callable[[RegularizerConfig, int], tuple[str, ...]] = lambda arm, seed: (),
) -> list[Job]:
    """Runs with some settings for all regularizers, a seed at a time."""
    arms = list(arms)
    return [
        Job(
            dataclasses.replace(config, regularizer=arm, seed=seed),
            evaluations,
            measurements(arm, seed),
        )
        for seed in seeds
        for arm in arms
    ]


def is_usable(result: Result) -> bool:
    """Whether a run finished with finite losses."""
    losses = (result["row"].get(name, math.nan) for name in ("train_loss", "test_loss"))
    return result["state"] == "finished" and all(map(math.isfinite, losses))


def num_unsolved(result: Result) -> int:
    """The number of samples that the solver gave up, in all evaluations of a run.

    The NFE of such a run cannot be compared with others.
    """
    every = result["row"], *result["evaluations"].values()
    return sum(row.get(f"{split}_num_failed", 0) for row in every for split in ("train", "test"))


class Arm(NamedTuple):
    """The results of one regularizer and weight, by seed."""

    order: int
    weight: float
    results: dict[int, Result]

    @property
    def label(self) -> str:
        """The arm in words."""
        return f"R_{self.order}, weight {self.weight:g}" if self.order else "unregularized"

    def values(self, name: str, evaluation: str | None = None) -> dict[int, float]:
        """A number of each run, from its last row or from a further evaluation."""
        at = lambda result: (
            result["row"] if evaluation is None else result["evaluations"][evaluation]
        )
        return {seed: float(at(result)[name]) for seed, result in self.results.items()}

    def listed(self, name: str, evaluation: str | None = None) -> list[float]:
        """The same without the seeds."""
        return list(self.values(name, evaluation).values())

    def measured(self, name: str) -> list[Any]:
        """A measurement, by its name, of all runs that have it."""
        return [x["measured"][name] for x in self.results.values() if name in x["measured"]]


def arms_of(results: Sequence[Result], *, num_arms: int = 2) -> list[Arm]:
    """Arms by order and weight. The unregularized runs come first, as order 0.

    Failed runs and runs with unsolved samples are left out; `notes.remarks_on` counts them. Raises
    `MissingRuns` if no unregularized run is left, or fewer than `num_arms` arms.
    """
    groups: dict[tuple[int, float], dict[int, Result]] = {}
    for result in results:
        settings = result["config"]["regularizer"]
        order = derivative_order(settings["name"]) or 0
        if is_usable(result) and not num_unsolved(result):
            group = groups.setdefault((order, settings["weight"]), {})
            group[result["config"]["seed"]] = result
    arms = [Arm(*key, dict(sorted(groups[key].items()))) for key in sorted(groups)]
    if not arms or arms[0].order != 0:
        raise MissingRuns("All unregularized runs failed.")
    if len(arms) < num_arms:
        raise MissingRuns(f"Only runs of {len(arms)} of at least {num_arms} arms are there.")
    return arms


def paired(arms: Sequence[Arm]) -> list[Arm]:
    """The arms with only the seeds that all of them have; raises `MissingRuns` without any."""
    common = set.intersection(*(set(arm.results) for arm in arms))
    if not common:
        raise MissingRuns("No seed has runs of all arms.")
    return [
        arm._replace(results={seed: x for seed, x in arm.results.items() if seed in common})
        for arm in arms
    ]


def first_measured(arm: Arm, name: str) -> Any:
    """A measurement of the first run that has it; raises `MissingRuns` without any."""
    found = arm.measured(name)
    if not found:
        raise MissingRuns(f"The runs to be drawn failed ({arm.label}).")
    return found[0]
