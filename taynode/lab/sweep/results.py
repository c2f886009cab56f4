"""The results of jobs. Kept results are used, and missing ones are computed.

The directory of a sweep holds the table of its results and two folders that can be made again: the
parameters of the trained models, and the directories of the workers. A result is moved from a
worker's directory to the table when the worker ends. If this process is killed before that, the
next call moves it.
"""

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from ..files import exclusive, Json
from .directory import clear, LOCK, name_of_parameters, PARAMETERS, read_result
from .executor import AbstractExecutor, Usage
from .plan import Job
from .table import Table


WORK, MODELS = "work", "parameters"
Result: TypeAlias = Json
IDLE = Usage(0, 0)


@dataclasses.dataclass(frozen=True)
class RunsDone:
    """The number of runs that are done.

    - `count`, `total`: the number of runs that are done, and of all runs.
    - `known`: the number of runs that had been done before.
    - `message`: the error of the last run, if it had one.
    - `failed`: the number of runs that failed or could not be done, without those done before.
    - `usage`: the machines in use, and the number of runs on them.
    """

    count: int
    total: int
    known: int
    message: str = ""
    failed: int = 0
    usage: Usage = IDLE


def run_jobs(
    jobs: Iterable[Job],
    root: Path,
    executor: AbstractExecutor,
    *,
    on_progress: Callable[[RunsDone], None] | None = None,
) -> Iterator[tuple[Job, Result | None, str]]:
    """Execute jobs without a result, and yield each job with its result or its error.

    `on_progress` is called at the start, and after each run.
    """
    table = Table(root)
    known, missing = known_and_missing(jobs, root, table)
    count, total, num_failed = len(known), len(known) + len(missing), 0
    notify = on_progress or (lambda runs: None)
    if total:
        notify(RunsDone(count, total, count))
    for job, result in known:
        yield job, result, ""
    for done in executor.execute(missing, root / WORK):
        result = collect(done.job, root, table)
        count += 1
        num_failed += has_failed(result)
        message = done.error or remark(result)
        notify(RunsDone(count, total, len(known), message, num_failed, executor.usage()))
        yield done.job, result, done.error


def known_and_missing(
    jobs: Iterable[Job], root: Path, table: Table | None = None
) -> tuple[list[tuple[Job, Result]], list[Job]]:
    """The jobs that have results, with these, and the jobs to execute. Each job comes once."""
    table = table or Table(root)
    results = table.results()
    known, missing = [], []
    for job in dict.fromkeys(jobs):
        result = results.get(job) or collect(job, root, table)
        if result is None:
            missing.append(job)
        else:
            known.append((job, result))
    return known, missing


def has_failed(result: Result | None) -> bool:
    """Whether a run has failed or could not be done."""
    return result is None or result["state"] == "failed"


def remark(result: Result | None) -> str:
    """The message on a run that has ended."""
    if result is None:
        return ""
    if result["state"] == "failed":
        return f"failed: {result['message']}"
    return f"begun anew: {result['redone']}" if result.get("redone") else ""


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


def collect(job: Job, root: Path, table: Table) -> Result | None:
    """Move the result of a worker to the table, and the parameters to their folder."""
    directory = job.directory(root / WORK)
    if (result := read_result(job, directory)) is None:
        return None
    # First, so that a row never names a missing file.
    if (parameters := directory / PARAMETERS).exists():
        kept = root / MODELS / name_of_parameters(job)
        kept.parent.mkdir(exist_ok=True)
        os.replace(parameters, kept)
    table.append(result)
    return result
