"""The results of jobs. Kept results are used, and missing ones are computed.

The directory of a sweep holds the table of its results and two folders that can be made again: the
parameters of the trained models, and the directories of the workers. A result is moved from a
worker's directory to the table when the worker ends. If this process is killed before that, the
next call moves it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from ..files import exclusive, Json
from .directory import clear, LOCK, name_of_parameters, PARAMETERS, read_result
from .executor import AbstractExecutor
from .plan import Job
from .table import Table


WORK, MODELS = "work", "parameters"
Result: TypeAlias = Json


def run_jobs(
    jobs: Sequence[Job], root: Path, executor: AbstractExecutor
) -> Iterator[tuple[Job, Result | None, str]]:
    """Execute jobs without a result, and yield each job with its result or its error."""
    known, missing = known_and_missing(jobs, root)
    for job, result in known:
        yield job, result, ""
    for done in executor.execute(missing, root / WORK):
        yield done.job, _collect(done.job, root), done.error


def known_and_missing(
    jobs: Iterable[Job], root: Path
) -> tuple[list[tuple[Job, Result]], list[Job]]:
    """The jobs that have results, with these, and the jobs to execute. Each job comes once."""
    results = Table(root).results()
    known, missing = [], []
    for job in dict.fromkeys(jobs):
        result = results.get(job) or _collect(job, root)
        if result is None:
            missing.append(job)
        else:
            known.append((job, result))
    return known, missing


def forget(jobs: Iterable[Job], root: Path) -> None:
    """Delete the results and the files of some jobs, after waiting for their workers."""
    jobs = list(jobs)
    for job in jobs:
        directory = job.directory(root / WORK)
        if directory.exists():
            with exclusive(directory / LOCK):
                clear(directory)
    # Last, because a result that is still in a directory would be moved to the table.
    Table(root).forget(jobs)


def _collect(job: Job, root: Path) -> Result | None:
    """Move the result of a worker to the table, and the parameters to their folder."""
    directory = job.directory(root / WORK)
    if (result := read_result(job, directory)) is None:
        return None
    # First, so that a row never names a missing file.
    if (parameters := directory / PARAMETERS).exists():
        kept = root / MODELS / name_of_parameters(job)
        kept.parent.mkdir(exist_ok=True)
        os.replace(parameters, kept)
    Table(root).append(result)
    return result
