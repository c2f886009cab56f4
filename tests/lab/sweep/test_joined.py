"""Jobs with the same settings share a run."""

import dataclasses

import pytest

from taynode.lab.config import SolveConfig
from taynode.lab.sweep.executor import AbstractExecutor, Done
from taynode.lab.sweep.joined import joined
from taynode.lab.sweep.plan import EvaluationConfig, Job
from taynode.lab.sweep.results import forget, known_and_missing, run_jobs
from taynode.lab.sweep.table import Table

from .pretend import job as made_job
from .test_table import result


TIGHT, LOOSE = (EvaluationConfig(name, SolveConfig()) for name in ("tight", "loose"))
OTHER_TIGHT = EvaluationConfig("tight", SolveConfig(rtol=1e-3))


def job(evaluations=(), measurements=(), seed=0):
    return Job(made_job(seed).config, tuple(evaluations), tuple(measurements))


def result_with(job, state="finished", **more):
    made = result(job, **{"state": state, "message": "", "row": {}} | more)
    made["evaluations"] = {e.name: {"test_nfe": 10.0} for e in job.evaluations}
    made["measured"] = {name: {"of": name} for name in job.measurements}
    return made


class Pretends(AbstractExecutor):
    """Makes up results of the jobs that it is asked for.

    Measurements named "fails" fail, and with one named "crashes" the process ends.
    """

    def __init__(self, root):
        self.root, self.asked = root, []

    def execute(self, jobs, root):
        del root
        for job in jobs:
            self.asked.append(job)
            if "crashes" in job.measurements:
                yield Done(job, error="ValueError: crash")
                continue
            failed = {"state": "failed", "parameters": {}} if "fails" in job.measurements else {}
            Table(self.root).append(result_with(job, **failed))
            yield Done(job)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Results by job, and the jobs that were executed for them."""
    # The results are in the table as soon as a job ends.
    collect = lambda job, root, table: Table(root).results().get(job)
    monkeypatch.setattr("taynode.lab.sweep.results.collect", collect)

    def run(*jobs):
        executor, told = Pretends(tmp_path), []
        ended = run_jobs(jobs, tmp_path, executor, on_progress=told.append)
        found = {job: result for job, result, _ in ended}
        assert told[-1].count == told[-1].total
        return found, executor.asked

    return run


def test_one_run_serves_all(run):
    jobs = job(), job([TIGHT], ["paths"]), job([LOOSE, TIGHT]), job(seed=1)
    found, asked = run(*jobs)
    assert asked == [job([LOOSE, TIGHT], ["paths"]), job(seed=1)]
    assert found.keys() == set(jobs)
    for each, its in found.items():
        # Nobody sees more than was asked for.
        assert its["evaluations"].keys() == {e.name for e in each.evaluations}
        assert its["measured"].keys() == set(each.measurements)
        assert its["config"] == its["job"]["config"]
        assert its["job"] == each.as_dict()
    # The same run, which is counted once.
    assert len({its["identity"] for its in found.values()}) == 2
    again, asked = run(*jobs)
    assert (again, asked) == (found, [])


def test_a_kept_run_serves_what_it_has(run):
    run(job([TIGHT], ["paths"]))
    assert run(job([TIGHT]))[1] == run(job())[1] == []
    assert run(job([LOOSE]))[1] == [job([LOOSE])]
    assert run(job([OTHER_TIGHT]))[1] == [job([OTHER_TIGHT])]


def test_evaluations_of_one_name_are_kept_apart():
    jobs = [job([TIGHT]), job([OTHER_TIGHT])]
    assert joined(jobs) == {each: [each] for each in jobs}


def test_a_failed_measurement_fails_only_those_that_asked_for_it(run):
    plain, fails = job([TIGHT]), job([LOOSE], ["fails"])
    found, asked = run(plain, fails)
    assert asked == [job([LOOSE, TIGHT], ["fails"]), plain, fails]
    states = {each: its["state"] for each, its in found.items()}
    assert states == {plain: "finished", fails: "failed"}
    assert run(plain, fails)[1] == []


def test_a_process_that_crashes_takes_only_those_that_asked_for_it(run):
    """It took all that shared the run, again and again."""
    plain, crashes = job([TIGHT]), job([LOOSE], ["crashes"])
    found, asked = run(plain, crashes)
    assert asked == [job([LOOSE, TIGHT], ["crashes"]), plain, crashes]
    assert found[plain]["state"] == "finished"
    assert found[crashes] is None


def test_the_run_that_is_shared_does_not_depend_on_the_order_of_jobs():
    """A run that was killed was not continued when studies were named in another order."""
    some = job([TIGHT], ["b"]), job([LOOSE], ["a"])
    assert joined(some).keys() == joined(some[::-1]).keys() == {job([LOOSE, TIGHT], ["a", "b"])}


def test_a_failure_in_training_is_that_of_all(tmp_path, run):
    Table(tmp_path).append(result_with(job([TIGHT]), state="failed"))
    found, asked = run(job())
    assert asked == []
    assert found[job()]["state"] == "failed"


def test_to_forget_a_job_is_to_forget_what_would_serve_it(tmp_path):
    kept = job([TIGHT]), job([LOOSE]), job(seed=1)
    for each in kept:
        Table(tmp_path).append(result_with(each))
    forget([job([TIGHT])], tmp_path)
    assert known_and_missing(kept, tmp_path)[1] == [kept[0]]
    forget([job()], tmp_path)
    assert Table(tmp_path).results().keys() == {kept[2]}


def test_bug_a_run_of_another_version_may_lack_a_column(tmp_path, run):
    """It served a study that reads the column, which then failed."""
    old, new = job([TIGHT]), dataclasses.replace(job([TIGHT]), columns=("training_nfe",))
    Table(tmp_path).append(result_with(old, environment={"taynode": "0.1.0"}))
    assert run(old)[1] == []
    assert run(new)[1] == [new]
    # One of this version serves if it has the column.
    for row, asked in ({"training_nfe": 3.0}, []), ({}, [new]):
        forget([old, new], tmp_path)
        Table(tmp_path).append(result_with(old, row=row))
        assert run(new)[1] == asked


def test_a_run_of_another_version_serves_its_own_job_alone(tmp_path, run):
    Table(tmp_path).append(result_with(job([TIGHT]), environment={"taynode": "0.1.0"}))
    assert run(job([TIGHT]))[1] == []
    assert run(job())[1] == [job()]
