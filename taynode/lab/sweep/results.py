"""What is known of the jobs of a sweep, and the table of it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..training.records import drafted, replace_text
from .executor import AbstractExecutor
from .plan import Job, job_from_dict
from .worker import read_result, RESULT


TABLE, PARQUET = "runs.jsonl", "runs.parquet"
LONG = ("job", "history", "measured")


def result_of(job: Job, root: Path) -> dict[str, Any] | None:
    """The result of a job; none if there is none that can be trusted."""
    return read_result(job, job.directory(root))


def run_jobs(
    jobs: Sequence[Job], root: Path, executor: AbstractExecutor
) -> Iterator[tuple[Job, dict[str, Any] | None, str]]:
    """Do what has not been done yet: jobs, their results, and errors of those without any."""
    known, missing = known_and_missing(jobs, root)
    for job, result in known:
        yield job, result, ""
    for done in executor.execute(missing, root):
        yield done.job, result_of(done.job, root), done.error


def known_and_missing(
    jobs: Sequence[Job], root: Path
) -> tuple[list[tuple[Job, dict[str, Any]]], list[Job]]:
    """Each job once: those that have been done, with their results, and those to do."""
    known, missing = [], []
    for job in {job.identity: job for job in jobs}.values():
        result = result_of(job, root)
        if result is None:
            missing.append(job)
        else:
            known.append((job, result))
    return known, missing


def write_table(root: Path) -> Path:
    """One line for each result under a root, whichever study it belongs to.

    The same as `runs.parquet`, with a column for every number, if polars is installed.
    """
    done = [result for file in sorted(root.glob(f"*/{RESULT}")) if (result := _read(file))]
    # Without what is long: the course of a run, and what was measured besides.
    rows = [{k: v for k, v in result.items() if k not in LONG} for result in done]
    replace_text(root / TABLE, "".join(json.dumps(row) + "\n" for row in rows))
    try:
        import polars
    except ModuleNotFoundError:
        return root / TABLE
    table = polars.DataFrame([flat(result) for result in done], infer_schema_length=None)
    with drafted(root / PARQUET) as draft:
        table.write_parquet(draft)
    return root / TABLE


def _read(file: Path) -> dict[str, Any] | None:
    try:
        job = job_from_dict(json.loads(file.read_text())["job"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return read_result(job, file.parent)


def flat(result: dict[str, Any]) -> dict[str, Any]:
    """A result as one row: settings, numbers and further evaluations, with dots in their names."""
    row = {name: result[name] for name in ("identity", "state", "message", "data")}
    row["redone"] = result.get("redone", "")
    for part in ("config", "row", "evaluations"):
        row |= _flatten(result.get(part, {}), part)
    return row


def _flatten(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in values.items():
        key = f"{prefix}.{name}"
        if isinstance(value, dict):
            out |= _flatten(value, key)
        elif isinstance(value, list | tuple):
            out[key] = json.dumps(value)
        else:
            out[key] = value
    return out
