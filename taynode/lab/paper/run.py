"""Runs studies, from their jobs to their figures."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ..files import write_json
from ..sweep.executor import AbstractExecutor
from ..sweep.plan import Job
from ..sweep.results import Result, run_jobs, RunsDone
from .arms import MissingRuns
from .effort import effort_of
from .notes import remarks_on
from .study import AbstractStudy, Claim, Record, StudyFailed


@dataclasses.dataclass(frozen=True)
class Ended:
    """A study that has ended, with its claims, or with the reason for having none."""

    study: AbstractStudy
    claims: Sequence[Claim] = ()
    error: Exception | None = None


def run_studies(
    seeds: Mapping[AbstractStudy, Sequence[int]],
    root: Path,
    *,
    scale: str,
    executor: AbstractExecutor,
    on_progress: Callable[[RunsDone], None] | None = None,
) -> Iterator[Ended]:
    """Do the missing runs of some studies, and yield each study when its last run has ended.

    The runs of all studies are done together, so that no core waits for the end of a study. Studies
    without runs come last: they measure in this process, and then have the machine for themselves.
    An error in one study does not stop the others.

    **Arguments:**

    - `seeds`: the studies, and the seeds of their runs.
    - `root`: the directory of the results: `NAME.json`, `.svg` and `.png`, and the runs in `runs/`,
        with a table for each task, `TASK.jsonl`, which all studies share.
    - `scale`: the scale of the runs.
    - `executor`: runs the jobs.
    - `on_progress`: called at the start, and after each run.
    """
    jobs = {study: study.jobs(scale, seeds[study]) for study in seeds}
    runs = root / "runs"
    left = {study: set(each) for study, each in jobs.items()}
    results: dict[Job, Result] = {}
    errors: dict[Job, str] = {}

    def end(study: AbstractStudy) -> Ended:
        each = jobs[study]
        if failed := [job for job in each if job in errors]:
            # A run that was done and failed is a result. One that could not be done is an error.
            problem = f"{len(failed)} of its runs could not be done, such as {failed[0].identity}"
            problem += f" in {runs}: {errors[failed[0]]} Call it again to try them again."
            return Ended(study, error=StudyFailed(problem))
        found = [results[job] for job in each]
        return _end(study, found, root, scale=scale, seeds=seeds[study])

    def ended_with(job: Job) -> Iterator[Ended]:
        for study in [study for study, waiting in left.items() if job in waiting]:
            left[study].remove(job)
            if not left[study]:
                yield end(study)

    everything = [job for each in jobs.values() for job in each]
    for job, result, error in run_jobs(everything, runs, executor, on_progress=on_progress):
        if result is None:
            errors[job] = error or "it has left no result"
        else:
            results[job] = result
        yield from ended_with(job)
    for study in seeds:
        if not jobs[study]:
            yield end(study)


def _end(
    study: AbstractStudy,
    results: Sequence[Result],
    root: Path,
    *,
    scale: str,
    seeds: Sequence[int],
) -> Ended:
    """Write the numbers, the claims and the figure."""
    try:
        record, claims = record_of(study, results, scale=scale, seeds=seeds)
        root.mkdir(parents=True, exist_ok=True)
        write_json(root / f"{study.name}.json", record)
        if record["numbers"] is not None:
            from .print import save

            save(study.chart(record["numbers"]), root / study.name)
    except Exception as error:
        return Ended(study, error=error)
    return Ended(study, claims)


def record_of(
    study: AbstractStudy, results: Sequence[Result], *, scale: str, seeds: Sequence[int]
) -> tuple[Record, list[Claim]]:
    """The contents of the JSON file of a study, and its claims.

    If too many of its runs failed, there are no numbers, and the claims are undecided.
    """
    try:
        numbers = study.numbers(results, scale)
        claims, table = study.claims(numbers), study.table(numbers)
    except MissingRuns as missing:
        numbers, table = None, []
        claims = [Claim(study.title, "", str(missing), "undecided")]
    record = {
        "study": study.name,
        "title": study.title,
        "scale": scale,
        "seeds": list(seeds),
        "claims": [dataclasses.asdict(claim) for claim in claims],
        "table": table,
        "data": remarks_on_data(results),
        "remarks": [*study.remarks, *remarks_on(results)],
        "effort": effort_of(results),
        "numbers": numbers,
    }
    return record, claims


def remarks_on_data(results: Sequence[Result]) -> list[str]:
    """Remarks on the data: that some of it is missing, or that not all runs have the same."""
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
