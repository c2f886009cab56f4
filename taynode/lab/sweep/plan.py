"""The jobs of a sweep. This module does not import JAX."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from ...registry import one_of
from ..config import (
    chosen,
    from_dict,
    PRECISIONS,
    SolveConfig,
    to_dict,
    TrainConfig,
)
from ..files import Json


# A function for each name of a measurement. It takes the directory of a run.
Measurements: TypeAlias = Mapping[str, Callable[[Path], Json]]


@dataclasses.dataclass(frozen=True)
class WithoutSamples:
    """A measurement that does not read `samples.npz`, which takes seconds to write."""

    function: Callable[[Path], Json]

    def __call__(self, directory: Path) -> Json:
        """Measure a run in a directory."""
        return self.function(directory)


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """A further evaluation of a trained model.

    - `name`: the key of its numbers in the result.
    - `solve`: how to solve.
    - `precision`: the precision of the solve.
    - `samples`: the number of samples of each split.
    - `splits`: the parts of the data, `"train"` or `"test"`.
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
    """A run, and further evaluations and measurements of its model.

    - `config`: the settings of the run.
    - `evaluations`: further evaluations.
    - `measurements`: the names of further measurements. The worker has a function for each name;
        see `taynode.lab.sweep.worker`.
    - `columns`: names in the last row of the run that those of earlier versions may lack.
    """

    config: TrainConfig
    evaluations: tuple[EvaluationConfig, ...] = ()
    measurements: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """A name for the files of this job. It differs if any setting differs."""
        # As if read from a file, because 1 for a float then becomes 1.0.
        return identity_of_read(job_from_dict(self.as_dict()))

    def directory(self, root: Path) -> Path:
        """The directory in which a worker executes this job."""
        return root / self.identity

    def as_dict(self) -> Json:
        """The job as nested dictionaries."""
        evaluations = [to_dict(evaluation) for evaluation in self.evaluations]
        return {
            "config": to_dict(self.config),
            "evaluations": evaluations,
            "measurements": list(self.measurements),
            "columns": list(self.columns),
        }


def job_from_dict(values: Json) -> Job:
    """A job from nested dictionaries."""
    evaluations = [from_dict(EvaluationConfig, values) for values in values["evaluations"]]
    names = (tuple(values.get(name, ())) for name in ("measurements", "columns"))
    return Job(from_dict(TrainConfig, values["config"]), tuple(evaluations), *names)


def identity_of_read(job: Job) -> str:
    """The identity of a job that has been read from a file."""
    settings = json.dumps(chosen(job), sort_keys=True)
    digest = hashlib.sha256(settings.encode()).hexdigest()[:12]
    regularizer, seed = job.config.regularizer.name, job.config.seed
    return f"{file_name(job.config.task)}-{regularizer}-{seed}-{digest}"


def file_name(task: str) -> str:
    """The name of a task, such as `module:Class`, as a part of file names."""
    return re.sub(r"[^\w.-]", ".", task)
