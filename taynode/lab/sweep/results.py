"""The results of jobs. Kept results are used, and missing ones are computed.

The directory of a sweep holds the table of its results and two folders that can be made again: the
parameters of the trained models, and the directories of the workers. A result is moved from a
worker's directory to the table when the worker ends. If this process is killed before that, the
next call moves it.
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from ..files import exclusive, Json
from .directory import clear, LOCK, name_of_parameters, PARAMETERS, read_result
from .executor import AbstractExecutor, Usage
from .joined import joined, Kept, part_for, serves
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

    Jobs that differ only in what they ask of the trained model share a run.

    `on_progress` is called at the start, and after each run.
    """
    table = Table(root)
    known, missing = known_and_missing(jobs, root, table)
    waiting = joined(missing)
    num_known = len({result["identity"] for _, result in known})
    count, total, num_failed = num_known, num_known + len(waiting), 0
    notify = on_progress or (lambda runs: None)
    if total:
        notify(RunsDone(count, total, num_known))
    for job, result in known:
        yield job, result, ""
    if waiting:
        # Rather than after hours of training.
        table.check()
    while waiting:
        alone: list[Job] = []
        for done in executor.execute(list(waiting), root / WORK):
            result = collect(done.job, root, table)
            count += 1
            num_failed += has_failed(result)
            message = done.error or remark(result)
            notify(RunsDone(count, total, num_known, message, num_failed, executor.usage()))
            served = waiting[done.job]
            for job in served:
                if result is None and len(served) > 1:
                    # What failed may be a measurement that this job does not ask for.
                    alone.append(job)
                elif result is None:
                    yield job, None, done.error
                elif serves(result, done.job, job):
                    yield job, part_for(job, result), done.error
                else:
                    alone.append(job)
        waiting = {job: [job] for job in alone}
        total += len(waiting)


def known_and_missing(
    jobs: Iterable[Job], root: Path, table: Table | None = None
) -> tuple[list[tuple[Job, Result]], list[Job]]:
    """The jobs that have results, with these, and the jobs to execute. Each job comes once."""
    table = table or Table(root)
    jobs = list(dict.fromkeys(jobs))
    results = table.results()
    for job in joined(jobs):
        # A worker may have left a result when the last call was killed.
        if job not in results and (result := collect(job, root, table)) is not None:
            results[job] = result
    kept = Kept(results)
    known, missing = [], []
    for job in jobs:
        result = kept.result(job) or collect(job, root, table)
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


def forget(
    jobs: Iterable[Job], root: Path, *, say: Callable[[str], object] = lambda message: None
) -> None:
    """Delete the results and the files of some jobs, after waiting for their workers.

    Results of other jobs that would serve these are deleted, too. `say` is told of each worker that
    is waited for.
    """
    wanted = list(jobs)
    kept = Kept(Table(root).results())
    jobs = {each for job in wanted for each in (job, *kept.serving(job))} | joined(wanted).keys()
    for job in jobs:
        directory = job.directory(root / WORK)
        if directory.exists():
            with _without_worker(directory, say):
                clear(directory)
    # Last, because a result that is still in a directory would be moved to the table.
    Table(root).forget(jobs)


@contextlib.contextmanager
def _without_worker(directory: Path, say: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock of a worker, and say so if it has to be waited for."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(exclusive(directory / LOCK, wait=False))
        except BlockingIOError:
            say(f"Waiting for a run in {directory}, which another process executes.")
            held.enter_context(exclusive(directory / LOCK))
        yield


def collect(job: Job, root: Path, table: Table) -> Result | None:
    """Move the result of a worker to the table, and the parameters to their folder."""
    directory = job.directory(root / WORK)
    if (result := read_result(job, directory)) is None:
        return None
    # First, so that a row never names a missing file.
    if (parameters := directory / PARAMETERS).exists():
        kept = root / MODELS / name_of_parameters(job)
        kept.parent.mkdir(exist_ok=True)
        # Another process that collects the same result may have moved them just now.
        with contextlib.suppress(FileNotFoundError):
            os.replace(parameters, kept)
    table.append(result)
    return result
