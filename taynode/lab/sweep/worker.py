"""One job, in a process of its own: `python -m taynode.lab.sweep.worker JOB.json DIRECTORY`.

With `--attached`, it ends as soon as its standard input does: when whoever started it is no more.
"""

import contextlib
import importlib
import json
import os
import shutil
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..config import ConfigError, TrainConfig
from ..training.records import RunDirectory, write_json
from .plan import EvaluationConfig, Job, job_from_dict


RESULT = "result.json"
ATTACHED = "--attached"
PARTS = {
    "identity",
    "job",
    "config",
    "state",
    "message",
    "data",
    "row",
    "history",
    "evaluations",
    "measured",
}
# What is kept of the evaluations before the last one.
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
)
KEPT = ("job.json", ".lock", "error.txt")


def main(words: list[str]) -> int:
    """Do a job: `result.json` in its directory says how it went."""
    if ATTACHED in words:
        threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        job, directory = job_from_dict(json.loads(Path(words[0]).read_text())), Path(words[1])
        with alone(directory):
            # Whoever was here before may have done it.
            if read_result(job, directory) is None:
                write_json(directory / RESULT, do(job, directory))
    except Exception as error:
        traceback.print_exc()
        # The last line is what is shown.
        sys.stderr.write(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}\n")
        return 1
    return 0


def _end_with_input() -> None:
    # Not by `sys.stdin`, whose lock Python would want in the end.
    while os.read(0, 1):
        pass
    # At once: there are checkpoints to go on from.
    os._exit(1)


def read_result(job: Job, directory: Path) -> dict[str, Any] | None:
    """The result of a job; none if there is none that can be trusted."""
    try:
        result = json.loads((directory / RESULT).read_text())
        # Also settings that were left at their defaults have to be the same.
        return result if PARTS <= result.keys() and job_from_dict(result["job"]) == job else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Wait until no other process works in a directory."""
    try:
        import fcntl
    except ModuleNotFoundError:
        yield
        return
    with open(directory / ".lock", "w") as file:
        # Not all file systems have locks.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def do(job: Job, directory: Path) -> dict[str, Any]:
    """Train, or go on with it, and evaluate; a run that fails is a result, too."""
    from ..tasks.base import find_task
    from ..training.checkpoints import CheckpointError, SaveError
    from ..training.failures import TrainingFailed

    told = job.as_dict()
    result = {"identity": job.identity, "job": told, "config": told["config"]}
    result |= {"state": "finished", "message": ""}
    run = RunDirectory(directory)
    # If there is no such task, that is not the fault of what is there.
    find_task(job.config.task)
    if why := _why_not(job.config, run):
        clear(directory)
        result["redone"] = why
    elif (directory / RESULT).exists():
        result["redone"] = f"{RESULT} was damaged, or of other settings."
    try:
        try:
            _train(job, directory)
        except SaveError:
            raise
        except CheckpointError as error:
            # What cannot be read now may be sound.
            if isinstance(error.__cause__, OSError):
                raise
            clear(directory)
            result["redone"] = str(error)
            _train(job, directory)
    except TrainingFailed as failure:
        result |= {"state": "failed", "message": str(failure)}
    rows = run.rows()
    environment = run.environment()
    result["data"] = environment.pop("data", "")
    # Times depend on it.
    result["environment"] = environment
    result["row"] = rows[-1] if rows else {}
    result["history"] = [{k: row[k] for k in HISTORY if k in row} for row in rows]
    result |= {"evaluations": {}, "measured": {}}
    if result["state"] == "finished":
        try:
            for evaluation in job.evaluations:
                told = _evaluate(evaluation, directory, job.config.precision)
                result["evaluations"][evaluation.name] = told
            for name in job.measurements:
                result["measured"][name] = _measure(name, directory)
        except _no_good() as error:
            # This must not keep the others from being told of.
            result |= {"state": "failed", "message": f"{type(error).__name__}: {error}"}
    return result


def _why_not(config: TrainConfig, run: RunDirectory) -> str:
    """Why what is there of a run is of no use, if so."""
    try:
        same = not run.exists() or run.config() == config
    except ConfigError as error:
        return str(error)
    # Also settings that were left at their defaults, which checkpoints are not known by.
    return "" if same else "It was begun with other settings."


def _no_good() -> tuple[type[Exception], ...]:
    """What evaluations raise if the model is no good, and not the machine."""
    import equinox as eqx
    import numpy as np

    return ArithmeticError, np.linalg.LinAlgError, eqx.EquinoxRuntimeError


def clear(directory: Path) -> None:
    """Remove what there is of a run."""
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in KEPT:
            path.unlink()


def _train(job: Job, directory: Path) -> None:
    import jax

    config = job.config
    jax.config.update("jax_enable_x64", config.precision == "float64")
    from ..report.record import record_samples
    from ..tasks.base import find_task
    from ..training.loop import train

    # Nobody draws paths of all runs of a sweep, and to trace them takes a while.
    on_finish = record_samples if job.measurements else None
    train(config, find_task(config.task), directory, resume=True, on_finish=on_finish)


def _evaluate(evaluation: EvaluationConfig, directory: Path, trained_in: str) -> dict[str, Any]:
    import jax

    jax.config.update("jax_enable_x64", "float64" in (evaluation.precision, trained_in))
    from ..training.evaluate import Evaluator
    from ..training.loading import load

    run = load(directory, precision=evaluation.precision)
    evaluator = Evaluator(run.task, evaluation.solve, seed=run.config.seed)
    out = {}
    for split in evaluation.splits:
        data = getattr(run.data, split)
        report = evaluator.report(run.model, data, evaluation.samples, split=split)
        out |= {f"{split}_{name}": value for name, value in report.items()}
    return out


def _measure(name: str, directory: Path) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)(directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
