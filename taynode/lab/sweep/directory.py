"""The files of a job in the directory of its worker. This module does not import JAX."""

import json
import shutil
from pathlib import Path

from ..files import Json
from ..training.records import CONFIG
from .plan import Job
from .rows import result_of_row


RESULT, PARAMETERS, LOCK = "result.json", "parameters.eqx", ".lock"
# What the process that starts a worker writes, without the lock.
JOB, ERROR = "job.json", "error.txt"
KEPT = JOB, ERROR, LOCK


def read_result(job: Job, directory: Path) -> Json | None:
    """The result of a job, unless it is missing or invalid."""
    try:
        found, result = result_of_row(json.loads((directory / RESULT).read_text()))
    except (OSError, ValueError):
        return None
    return result if found == job else None


def clear(directory: Path) -> None:
    """Delete the files of a run."""
    # Last, since a directory without settings counts as one without checkpoints.
    for path in sorted(directory.iterdir(), key=lambda path: path.name == CONFIG):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in KEPT and not _is_draft_of_kept(path):
            path.unlink()


def _is_draft_of_kept(path: Path) -> bool:
    return path.name.startswith(tuple(f".{name.partition('.')[0]}." for name in (JOB, ERROR)))


def name_of_parameters(job: Job) -> str:
    """The file name of the kept parameters of a run."""
    return f"{job.identity}.eqx"
