"""What a sweep is made of, as plain data. Nothing here imports JAX."""

import dataclasses
from pathlib import Path
from typing import Any

from ...registry import one_of
from ..config import (
    digest_of,
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
    """A run and what is to be known of its model.

    - `measurements`: whatever else, as `module:function`; the function takes the directory of the
        run, in double precision, and returns plain data.
    """

    config: TrainConfig
    evaluations: tuple[EvaluationConfig, ...] = ()
    measurements: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """A name by which the same job is found again, whoever asks for it."""
        # As it comes back from a file, where 1 for a float has become 1.0.
        config, digest = self.config, digest_of(job_from_dict(self.as_dict()), 12)
        return f"{config.task.replace(':', '.')}-{config.regularizer.name}-{config.seed}-{digest}"

    def directory(self, root: Path) -> Path:
        """Where the run is."""
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
