"""The work of one job: training, evaluations and measurements."""

import hashlib
import os
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from ..config import ConfigError, one_of, to_dict, TrainConfig
from ..files import Json
from ..report.command import reproduce
from ..report.record import record_samples
from ..tasks.base import AbstractTask
from ..training.checkpoints import CheckpointError, SaveError
from ..training.evaluate import Evaluator
from ..training.failures import TrainingFailed
from ..training.loading import load
from ..training.loop import train
from ..training.parameters import write_parameters
from ..training.records import RunDirectory
from ..training.running import Training
from .directory import clear, name_of_parameters, PARAMETERS, RESULT
from .plan import EvaluationConfig, Job, Measurements, WithoutSamples
from .rows import VERSION


# The kept metrics of the evaluations before the last one.
HISTORY = (
    "step",
    "epoch",
    "train_loss",
    "test_loss",
    "valid_loss",
    "train_error",
    "test_error",
    "train_nfe",
    "test_nfe",
    "train_seconds",
    "r2",
    "r3",
    "weight",
    "course",
)


def do(job: Job, directory: Path, task: AbstractTask, measurements: Measurements) -> Json:
    """Train, or continue to train, and evaluate. A failed run is a result, too."""
    for name in job.measurements:
        one_of("measurements", name, measurements)
    settings = job.as_dict()
    result = {"version": VERSION, "identity": job.identity, "job": settings}
    result |= {"config": settings["config"], "state": "finished", "message": ""}
    # Paths take time to compute, and only some measurements use them.
    records = any(not isinstance(measurements[x], WithoutSamples) for x in job.measurements)
    run = RunDirectory(directory)
    if why := _why_not(job.config, run):
        clear(directory)
        result["redone"] = _without_place(why, directory)
    elif (directory / RESULT).exists():
        result["redone"] = f"{RESULT} was damaged, or of other settings."
    try:
        try:
            _train(job, directory, task, records=records)
        except SaveError:
            raise
        except CheckpointError as error:
            # Files that cannot be read now may be undamaged.
            if isinstance(error.__cause__, OSError):
                raise
            clear(directory)
            result["redone"] = _without_place(str(error), directory)
            _train(job, directory, task, records=records)
    except TrainingFailed as failure:
        result |= {"state": "failed", "message": _without_place(str(failure), directory)}
    rows = run.rows()
    environment = run.environment()
    result["data"] = environment.pop("data", "")
    # Measured times depend on the machine.
    result["environment"] = environment
    result["row"] = rows[-1] if rows else {}
    result["history"] = [{k: row[k] for k in HISTORY if k in row} for row in rows]
    result |= {"evaluations": {}, "measured": {}}
    if (directory / PARAMETERS).exists():
        result["parameters"] = _describe_parameters(job, directory / PARAMETERS)
    if result["state"] == "finished":
        try:
            for evaluation in job.evaluations:
                numbers = _evaluate(evaluation, directory, task, job.config.precision)
                result["evaluations"][evaluation.name] = numbers
            jax.config.update("jax_enable_x64", True)
            for name in job.measurements:
                result["measured"][name] = measurements[name](directory)
        except (ArithmeticError, np.linalg.LinAlgError, eqx.EquinoxRuntimeError) as error:
            # The model is at fault, not the machine.
            result |= {"state": "failed", "message": f"{type(error).__name__}: {error}"}
    return result


def _why_not(config: TrainConfig, run: RunDirectory) -> str:
    """Why the run in a directory cannot be continued; empty if it can."""
    try:
        same = not run.exists() or run.config() == config
    except ConfigError as error:
        return str(error)
    # The fingerprints of checkpoints do not include settings at their defaults.
    return "" if same else "It was begun with other settings."


def _without_place(text: str, directory: Path) -> str:
    """A message without the place of the run's directory, which means nothing to others."""
    return text.replace(f"{directory.parent}{os.sep}", "")


def _train(job: Job, directory: Path, task: AbstractTask, *, records: bool) -> None:
    config = job.config
    jax.config.update("jax_enable_x64", config.needs_x64)

    def on_finish(training: Training, path: Path) -> None:
        write_parameters(path / PARAMETERS, training.final_model, config, training.num_steps)
        if records:
            record_samples(training, path)

    train(config, task, directory, resume=True, on_finish=on_finish)


def _describe_parameters(job: Job, file: Path) -> dict[str, str]:
    """The name, the checksum and the command that makes the parameters of a run again."""
    with open(file, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    command = reproduce(to_dict(job.config))
    return {"file": name_of_parameters(job), "sha256": digest, "command": command}


def _evaluate(
    evaluation: EvaluationConfig, directory: Path, task: AbstractTask, trained_in: str
) -> Json:
    jax.config.update("jax_enable_x64", "float64" in (evaluation.precision, trained_in))
    run = load(directory, task=task, precision=evaluation.precision)
    evaluator = Evaluator(run.task, evaluation.solve, seed=run.config.seed)
    out = {}
    for split in evaluation.splits:
        data = getattr(run.data, split)
        report = evaluator.report(run.model, data, evaluation.samples, split=split)
        out |= {f"{split}_{name}": value for name, value in report.items()}
    return out
