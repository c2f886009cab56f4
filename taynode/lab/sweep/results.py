"""From jobs to their results: what is kept is used, and what is missing is done.

The directory of a sweep holds the table of its results, which is worth keeping, and two folders
that can be made again: the parameters of the trained models, and what the workers work in. A result
goes from a worker's directory to the table when the worker ends, or at the next call, if this
process is killed before.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..data.lock import exclusive
from .executor import AbstractExecutor
from .plan import Job
from .table import Table
from .work import clear, LOCK, name_of_parameters, PARAMETERS, read_result


WORK, MODELS = "work", "parameters"
Result = dict[str, Any]


def run_jobs(
    jobs: Sequence[Job], root: Path, executor: AbstractExecutor
) -> Iterator[tuple[Job, Result | None, str]]:
    """Do what has not been done yet: jobs, their results, and errors of those without any."""
    known, missing = known_and_missing(jobs, root)
    for job, result in known:
        yield job, result, ""
    for done in executor.execute(missing, root / WORK):
        yield done.job, _collect(done.job, root), done.error


def known_and_missing(
    jobs: Iterable[Job], root: Path
) -> tuple[list[tuple[Job, Result]], list[Job]]:
    """Each job once: those that have been done, with their results, and those to do."""
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
    """Remove all that there is of some jobs, each when nobody is at work on it any more."""
    jobs = list(jobs)
    for job in jobs:
        directory = job.directory(root / WORK)
        if directory.exists():
            with exclusive(directory / LOCK):
                clear(directory)
    # Last: a result that is still in a directory would come back from there.
    Table(root).forget(jobs)


def _collect(job: Job, root: Path) -> Result | None:
    """Move the result of a worker into the table, and the parameters to where they are kept."""
    directory = job.directory(root / WORK)
    if (result := read_result(job, directory)) is None:
        return None
    # First, so that a row never names a file that is not there.
    if (parameters := directory / PARAMETERS).exists():
        kept = root / MODELS / name_of_parameters(job)
        kept.parent.mkdir(exist_ok=True)
        os.replace(parameters, kept)
    Table(root).append(result)
    return result
