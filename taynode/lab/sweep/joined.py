"""Jobs with the same settings share one run, whatever each of them asks of the trained model."""

from collections.abc import Iterable, Mapping

from ... import __version__
from ..config import TrainConfig
from ..files import Json
from .plan import Job


def joined(jobs: Iterable[Job]) -> dict[Job, list[Job]]:
    """Jobs to execute, each with the jobs that it serves.

    A joined job has all evaluations and measurements of those it serves.
    """
    by_settings: dict[TrainConfig, list[Job]] = {}
    for job in jobs:
        by_settings.setdefault(job.config, []).append(job)
    found: dict[Job, list[Job]] = {}
    for config, some in by_settings.items():
        if len(some) == 1:
            found[some[0]] = some
            continue
        # In an order that does not depend on that of the jobs, so that a run can be continued.
        every = {each for job in some for each in job.evaluations}
        evaluations = sorted(every, key=lambda each: each.name)
        measurements = sorted({each for job in some for each in job.measurements})
        columns = sorted({each for job in some for each in job.columns})
        if len({each.name for each in evaluations}) < len(evaluations):
            # Results are kept by the names of evaluations.
            found |= {job: [job] for job in some}
        else:
            found[Job(config, tuple(evaluations), tuple(measurements), tuple(columns))] = some
    return found


def serves(result: Json, of: Job, job: Job) -> bool:
    """Whether the result of one job has all that another one asks for.

    Runs of another version of this package may have drawn other noise, and lack some columns; they
    serve only their own jobs. A failure in training is the same for all jobs with these settings.
    One that came later may be that of an evaluation which the other does not ask for.
    """
    if of == job:
        return True
    has_all = (
        result["environment"].get("taynode") == __version__
        and of.config == job.config
        and set(job.evaluations) <= set(of.evaluations)
        and set(job.measurements) <= set(of.measurements)
    )
    if result["state"] == "finished":
        return has_all and set(job.columns) <= result["row"].keys()
    return has_all and "parameters" not in result


def part_for(job: Job, result: Json) -> Json:
    """The part of a result that a job asks for, so that numbers do not depend on other jobs."""
    names = {evaluation.name for evaluation in job.evaluations}
    return {
        **result,
        "job": job.as_dict(),
        "evaluations": {k: v for k, v in result["evaluations"].items() if k in names},
        "measured": {k: v for k, v in result["measured"].items() if k in job.measurements},
    }


class Kept:
    """The kept results, found by what they are able to serve."""

    def __init__(self, results: Mapping[Job, Json]):
        self.results = results
        self.by_settings: dict[TrainConfig, list[Job]] = {}
        for job in results:
            self.by_settings.setdefault(job.config, []).append(job)

    def serving(self, job: Job) -> list[Job]:
        """The kept jobs that serve a job; that job itself comes first."""
        some = self.by_settings.get(job.config, [])
        found = [each for each in some if serves(self.results[each], each, job)]
        return sorted(found, key=lambda each: each != job)

    def result(self, job: Job) -> Json | None:
        """The kept result for a job; `None` without one."""
        found = self.serving(job)
        return part_for(job, self.results[found[0]]) if found else None
