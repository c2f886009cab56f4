"""Runs a study from its jobs to its figure."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..sweep.executor import AbstractExecutor
from ..sweep.results import known_and_missing, result_of, run_jobs, write_table
from ..training.records import write_json
from .arms import MissingRuns
from .effort import effort_of
from .study import AbstractStudy, Claim, StudyFailed


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a study is.

    - `count`, `total`: of its runs, how many are done, and how many there are.
    - `known`: how many of them had been done before.
    - `message`: what was wrong with the last one, if anything.
    """

    count: int
    total: int
    known: int
    message: str = ""


Watch = Callable[[Progress], None]


def run_study(
    study: AbstractStudy,
    root: Path,
    *,
    scale: str,
    seeds: Sequence[int],
    executor: AbstractExecutor,
    watch: Watch | None = None,
) -> list[Claim]:
    """Do what is missing, then write the numbers, the claims and the figure.

    **Arguments:**

    - `study`: which.
    - `root`: where everything goes: `NAME.json`, `.svg` and `.png`, and the runs in `runs/`, of all
        of which there is a table there, `runs.jsonl` and `runs.parquet`.
    - `scale`, `seeds`: of its runs.
    - `executor`: who does them.
    - `watch`: is told when it begins, and when a run has ended.

    Raises `StudyFailed` if there are runs that could not be done. Those that were, and failed, are
    results.
    """
    jobs, runs = study.jobs(scale, seeds), root / "runs"
    known, missing = known_and_missing(jobs, runs)
    so_far, total = len(known), len(known) + len(missing)
    errors = {}
    tell_watch = watch or (lambda progress: None)
    if jobs:
        tell_watch(Progress(so_far, total, so_far))
    for count, (job, result, error) in enumerate(run_jobs(missing, runs, executor), so_far + 1):
        if result is None:
            errors[job.identity] = error or "it has left no result"
        tell_watch(Progress(count, total, so_far, error or _remark(result)))
    if errors:
        first, why = next(iter(errors.items()))
        raise StudyFailed(
            f"{len(errors)} of its runs could not be done, such as {first} in {runs}: {why} "
            "Call it again to try them again."
        )
    found = [(job, result_of(job, runs)) for job in jobs]
    results = [result for _, result in found if result is not None]
    told, claims = tell(study, results, scale=scale, seeds=seeds)
    root.mkdir(parents=True, exist_ok=True)
    write_json(root / f"{study.name}.json", told)
    if told["numbers"] is not None:
        draw(study, told["numbers"], root)
    if jobs:
        write_table(runs)
    return claims


def _remark(result: dict[str, Any] | None) -> str:
    """What is to be said of a run that has ended."""
    if result is None:
        return ""
    if result["state"] == "failed":
        return f"failed: {result['message']}"
    return f"begun anew: {result['redone']}" if result.get("redone") else ""


def tell(
    study: AbstractStudy, results: Sequence[dict[str, Any]], *, scale: str, seeds: Sequence[int]
) -> tuple[dict[str, Any], list[Claim]]:
    """All that is known of a study, as plain data, and its claims.

    If too many of its runs failed there are no numbers, and nothing is decided.
    """
    try:
        numbers = study.numbers(results, scale)
        claims, table = study.claims(numbers), study.table(numbers)
    except MissingRuns as missing:
        numbers, table = None, []
        claims = [Claim(study.title, "", str(missing), "undecided")]
    told = {
        "study": study.name,
        "title": study.title,
        "scale": scale,
        "seeds": list(seeds),
        "claims": [dataclasses.asdict(claim) for claim in claims],
        "table": table,
        "data": remarks_on_data(results),
        "effort": effort_of(results),
        "numbers": numbers,
    }
    return told, claims


def remarks_on_data(results: Sequence[dict[str, Any]]) -> list[str]:
    """What is to be said of the data: that there is not all of it, or that it is not the same."""
    labels = {result["data"] for result in results}
    kinds: dict[tuple[str, str], set[str]] = {}
    for result in results:
        if digest := result.get("environment", {}).get("data_digest"):
            about = result["config"]
            kinds.setdefault((about["task"], about["scale"]), set()).add(digest)
    mixed = [task for (task, _), found in kinds.items() if len(found) > 1]
    return [
        *sorted(labels - {""}),
        *(f"not all runs of {task} have seen the same data" for task in mixed),
    ]


def draw(study: AbstractStudy, numbers: dict[str, Any], root: Path) -> None:
    """The figure, for screens and for print."""
    from .print import save

    save(study.chart(numbers), root / study.name)
