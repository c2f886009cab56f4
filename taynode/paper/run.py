"""Runs a study from its jobs to its figure."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..sweep.executor import AbstractExecutor
from ..sweep.results import result_of, run_jobs, write_table
from ..training.config import ConfigError
from ..training.records import write_json
from .arms import MissingRuns
from .study import AbstractStudy, Claim


Watch = Callable[[int, int, str], None]


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
    - `watch`: is told how many of how many runs are done, and what went wrong with the last.
    """
    jobs, runs = study.jobs(scale, seeds), root / "runs"
    total = len({job.identity for job in jobs})
    for count, (_, _, error) in enumerate(run_jobs(jobs, runs, executor), start=1):
        if watch is not None:
            watch(count, total, error)
    found = [(job, result_of(job, runs)) for job in jobs]
    missing = [job.identity for job, result in found if result is None]
    if missing:
        raise ConfigError(
            f"{len(missing)} of the runs of {study.name} have no result, such as {missing[0]}; "
            f"see error.txt in its directory in {runs}. Call it again to try them again."
        )
    results = [result for _, result in found if result is not None]
    told, claims = tell(study, results, scale=scale, seeds=seeds)
    root.mkdir(parents=True, exist_ok=True)
    write_json(root / f"{study.name}.json", told)
    if told["numbers"] is not None:
        draw(study, told["numbers"], root)
    if jobs:
        write_table(runs)
    return claims


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
        "data": sorted({result["data"] for result in results} - {""}),
        "numbers": numbers,
    }
    return told, claims


def draw(study: AbstractStudy, numbers: dict[str, Any], root: Path) -> None:
    """The figure, for screens and for print."""
    from .print import figure_of

    figure = figure_of(study.chart(numbers))
    for suffix, options in {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 150}}.items():
        figure.savefig(root / f"{study.name}.{suffix}", **options)
