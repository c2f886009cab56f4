"""Runs studies, from their jobs to their figures."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..files import write_json
from ..sweep.executor import AbstractExecutor
from ..sweep.plan import Job
from ..sweep.results import known_and_missing, run_jobs
from .arms import MissingRuns
from .effort import effort_of
from .notes import remarks_on
from .study import AbstractStudy, Claim, StudyFailed


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far the runs of all studies are.

    - `count`, `total`: how many are done, and how many there are.
    - `known`: how many of them had been done before.
    - `message`: what was wrong with the last one, if anything.
    """

    count: int
    total: int
    known: int
    message: str = ""


Watch = Callable[[Progress], None]


@dataclasses.dataclass(frozen=True)
class Ended:
    """A study that has ended: its claims, or why it has none."""

    study: AbstractStudy
    claims: Sequence[Claim] = ()
    error: Exception | None = None


def run_studies(
    seeds: Mapping[AbstractStudy, Sequence[int]],
    root: Path,
    *,
    scale: str,
    executor: AbstractExecutor,
    watch: Watch | None = None,
) -> Iterator[Ended]:
    """Do what is missing of some studies, and tell of each when the last of its runs has ended.

    The runs of all of them are done together, so that no core waits for the end of a study. Those
    without runs come last: they measure in this process, and then have the machine for themselves.
    That something is wrong with one does not stop the others.

    **Arguments:**

    - `seeds`: the studies, and those of their runs.
    - `root`: where everything goes: `NAME.json`, `.svg` and `.png`, and the runs in `runs/`, with a
        table for each task, `TASK.jsonl`, which all studies share.
    - `scale`: of the runs.
    - `executor`: who does them.
    - `watch`: is told when it begins, and when a run has ended.
    """
    jobs = {study: study.jobs(scale, seeds[study]) for study in seeds}
    runs = root / "runs"
    known, missing = known_and_missing([job for each in jobs.values() for job in each], runs)
    left = {study: set(each) for study, each in jobs.items()}
    results = dict(known)
    errors: dict[Job, str] = {}

    def end(study: AbstractStudy) -> Ended:
        each = jobs[study]
        if failed := [job for job in each if job in errors]:
            return Ended(study, error=_not_done(failed, errors[failed[0]], runs))
        found = [results[job] for job in each]
        return _end(study, found, root, scale=scale, seeds=seeds[study])

    def ended_with(job: Job) -> Iterator[Ended]:
        for study in [study for study, waiting in left.items() if job in waiting]:
            left[study].remove(job)
            if not left[study]:
                yield end(study)

    so_far, total = len(known), len(known) + len(missing)
    tell_watch = watch or (lambda progress: None)
    if total:
        tell_watch(Progress(so_far, total, so_far))
    for job, _ in known:
        yield from ended_with(job)
    for count, (job, result, error) in enumerate(run_jobs(missing, runs, executor), so_far + 1):
        if result is None:
            errors[job] = error or "it has left no result"
        else:
            results[job] = result
        tell_watch(Progress(count, total, so_far, error or _remark(result)))
        yield from ended_with(job)
    for study in seeds:
        if not jobs[study]:
            yield end(study)


def _not_done(failed: Sequence[Job], why: str, runs: Path) -> StudyFailed:
    """Runs that could not be done are an error. Those that were, and failed, are results."""
    return StudyFailed(
        f"{len(failed)} of its runs could not be done, such as {failed[0].identity} in {runs}: "
        f"{why} Call it again to try them again."
    )


def _end(
    study: AbstractStudy,
    results: Sequence[dict[str, Any]],
    root: Path,
    *,
    scale: str,
    seeds: Sequence[int],
) -> Ended:
    """Write the numbers, the claims and the figure."""
    try:
        told, claims = tell(study, results, scale=scale, seeds=seeds)
        root.mkdir(parents=True, exist_ok=True)
        write_json(root / f"{study.name}.json", told)
        if told["numbers"] is not None:
            draw(study, told["numbers"], root)
    except Exception as error:
        return Ended(study, error=error)
    return Ended(study, claims)


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
        "remarks": [*study.remarks, *remarks_on(results)],
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
