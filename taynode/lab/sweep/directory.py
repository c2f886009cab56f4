"""The files of a job in the directory of its worker. This module does not import JAX."""

import json
import shutil
from pathlib import Path

from ..files import Json
from .plan import Job
from .rows import result_of_row


RESULT, PARAMETERS, LOCK = "result.json", "parameters.eqx", ".lock"
KEPT = ("job.json", LOCK, "error.txt")


def read_result(job: Job, directory: Path) -> Json | None:
    """The result of a job, unless it is missing or invalid."""
    try:
        found, result = result_of_row(json.loads((directory / RESULT).read_text()))
    except (OSError, ValueError):
        return None
    return result if found == job else None


def clear(directory: Path) -> None:
    """Delete the files of a run."""
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in KEPT:
            path.unlink()


def name_of_parameters(job: Job) -> str:
    """The file name of the kept parameters of a run."""
    return f"{job.identity}.eqx"
