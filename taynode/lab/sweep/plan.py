"""What a sweep is made of, as plain data. Nothing here imports JAX."""

import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from ...registry import one_of
from ..config import (
    from_dict,
    PRECISIONS,
    SolveConfig,
    to_dict,
    TrainConfig,
)


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """One more evaluation of a trained model.

    - `name`: under which its numbers are found.
    - `solve`: how to solve.
    - `precision`: of the solve.
    - `samples`: how many, of each split.
    - `splits`: of the data.
    """

    name: str
    solve: SolveConfig
    precision: str = "float32"
    samples: int = 1000
    splits: tuple[str, ...] = ("test",)

    def __post_init__(self):
        one_of("precision", self.precision, PRECISIONS)
        for split in self.splits:
            one_of("splits", split, ("train", "test"))


@dataclasses.dataclass(frozen=True)
class Job:
    """A run, and what is to be known of its model.

    - `config`: the settings of the run.
    - `evaluations`: further evaluations of its model.
    - `measurements`: whatever else, by name. The worker has a function for each name; see
        `taynode.lab.sweep.worker`.
    """

    config: TrainConfig
    evaluations: tuple[EvaluationConfig, ...] = ()
    measurements: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """A name for the files of this job: jobs that differ in any setting have different ones."""
        # As it comes back from a file, where 1 for a float has become 1.0.
        settings = json.dumps(job_from_dict(self.as_dict()).as_dict(), sort_keys=True)
        digest = hashlib.sha256(settings.encode()).hexdigest()[:12]
        regularizer, seed = self.config.regularizer.name, self.config.seed
        return f"{file_name(self.config.task)}-{regularizer}-{seed}-{digest}"

    def directory(self, root: Path) -> Path:
        """Where a worker does it."""
        return root / self.identity

    def as_dict(self) -> dict[str, Any]:
        """The job as nested dictionaries."""
        evaluations = [to_dict(evaluation) for evaluation in self.evaluations]
        return {
            "config": to_dict(self.config),
            "evaluations": evaluations,
            "measurements": list(self.measurements),
        }


def job_from_dict(values: dict[str, Any]) -> Job:
    """A job from nested dictionaries."""
    evaluations = [from_dict(EvaluationConfig, values) for values in values["evaluations"]]
    measurements = tuple(values.get("measurements", ()))
    return Job(from_dict(TrainConfig, values["config"]), tuple(evaluations), measurements)


def file_name(task: str) -> str:
    """The name of a task, such as `module:Class`, without what file names cannot hold."""
    return re.sub(r"[^\w.-]", ".", task)
