"""What is known of the jobs of a sweep, and the table of it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..training.records import replace_text
from .executor import AbstractExecutor
from .plan import Job
from .worker import RESULT


TABLE = "runs.jsonl"


def result_of(job: Job, root: Path) -> dict[str, Any] | None:
    """The result of a job; none if there is none that can be trusted."""
    try:
        result = json.loads((job.directory(root) / RESULT).read_text())
    except (OSError, json.JSONDecodeError):
        return None
    is_whole = isinstance(result, dict) and {"identity", "state", "row"} <= result.keys()
    return result if is_whole and result["identity"] == job.identity else None


def run_jobs(
    jobs: Sequence[Job], root: Path, executor: AbstractExecutor
) -> Iterator[tuple[Job, dict[str, Any] | None, str]]:
    """Do what has not been done yet: jobs, their results, and errors of those without any."""
    unique = {job.identity: job for job in jobs}
    missing = []
    for job in unique.values():
        result = result_of(job, root)
        if result is None:
            missing.append(job)
        else:
            yield job, result, ""
    for done in executor.execute(missing, root):
        yield done.job, result_of(done.job, root), done.error


def write_table(jobs: Sequence[Job], root: Path) -> Path:
    """One line for each job that has a result, in the order of the jobs."""
    results = [result_of(job, root) for job in {job.identity: job for job in jobs}.values()]
    lines = [json.dumps(result) for result in results if result is not None]
    replace_text(root / TABLE, "".join(line + "\n" for line in lines))
    return root / TABLE
