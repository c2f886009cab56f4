"""Sweeps: what has been done is not done again, and what cannot be trusted is."""

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path

import jax
import pytest

from taynode import lab
from taynode.lab.config import OptimizerConfig, RegularizerConfig, SolveConfig
from taynode.lab.files import exclusive, write_json
from taynode.lab.sweep.directory import clear, LOCK, PARAMETERS, RESULT
from taynode.lab.sweep.executor import AbstractExecutor, Done, LocalExecutor
from taynode.lab.sweep.plan import EvaluationConfig, Job, job_from_dict
from taynode.lab.sweep.results import collect, forget, known_and_missing, MODELS, run_jobs, WORK
from taynode.lab.sweep.rows import row_of_result
from taynode.lab.sweep.table import Table
from taynode.lab.sweep.worker import main as worker
from taynode.lab.tasks.names import import_task
from tests.lab.sweep.test_table import result


HERE = Path(__file__).parents[1] / "training"
TASK = "tiny_task:Tiny"
TIGHT = EvaluationConfig("tight", SolveConfig(rtol=1e-9, atol=1e-9), "float64", 5, ("test",))


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Where the tiny task is; a worker chooses the precision."""
    monkeypatch.chdir(HERE)
    yield
    jax.config.update("jax_enable_x64", True)


def job(seed=0, **changes):
    task = import_task(TASK)
    # What compiles in no time.
    euler = SolveConfig(solver="euler", steps=2)
    plain = {"training": euler, "evaluation": euler, "regularizer": RegularizerConfig()}
    defaults = dataclasses.replace(task.defaults("smoke"), **plain)
    config = dataclasses.replace(defaults, epochs=1, num_evaluations=1, seed=seed)
    return Job(dataclasses.replace(config, **changes), (TIGHT,))


DIVERGING = {"optimizer": OptimizerConfig("sgd", 1e12), "regularizer": RegularizerConfig()}


class Here(AbstractExecutor):
    """Does jobs in this process."""

    def execute(self, jobs, root):
        for job in jobs:
            directory = job.directory(root)
            directory.mkdir(parents=True)
            write_json(directory / "job.json", job.as_dict())
            assert worker([str(directory / "job.json"), str(directory), "--task", TASK]) == 0
            yield Done(job)


class Nobody(AbstractExecutor):
    """Does nothing, and tells what it was asked for."""

    def __init__(self):
        self.asked = []

    def execute(self, jobs, root):
        self.asked += jobs
        for job in jobs:
            yield Done(job, "nobody was there")


def test_identity_is_that_of_the_settings():
    assert job().identity == job().identity
    assert job().identity != job(seed=1).identity
    assert job().identity != Job(job().config).identity
    assert job_from_dict(json.loads(json.dumps(job().as_dict()))) == job()


def test_sweep_from_beginning_to_end(tmp_path):
    # A task that the user has not named is not imported, though the job names it.
    broken = Job(dataclasses.replace(job().config, task="nowhere:Task"))
    jobs = [job(1), job(1)]
    ended = list(run_jobs([broken, *jobs], tmp_path, LocalExecutor(2, tasks=[TASK])))
    assert {j.identity for j, _, _ in ended} == {j.identity for j in [broken, *jobs]}
    # A job that cannot be done does not stop the others.
    errors = {j.identity: (result, error) for j, result, error in ended if error}
    (nothing, error) = errors.pop(broken.identity)
    assert nothing is None
    assert "'nowhere:Task' is not a built-in task" in error
    assert errors == {}
    table = Table(tmp_path).results()
    assert table.keys() == set(jobs)
    assert table == {j: result for j, result, _ in ended if result is not None}
    found = table[job(1)]
    assert found["state"] == "finished"
    assert found["row"]["step"] == 4
    assert found["evaluations"]["tight"]["test_nfe"] > found["row"]["test_nfe"]
    assert found["evaluations"]["tight"]["test_num_samples"] == 5
    # Errors are kept only of what went wrong.
    assert [file.parent.name for file in tmp_path.rglob("error.txt")] == [broken.identity]
    _the_table_is_enough(jobs, tmp_path)
    _parameters_are_kept(found, tmp_path)
    _a_result_that_has_not_reached_the_table_is_picked_up(job(1), tmp_path)


@pytest.mark.usefixtures("no_penalties")
def test_a_run_that_fails_is_a_result(tmp_path):
    """It is not tried again, and says why."""
    fails = job(epochs=8, **DIVERGING)
    list(run_jobs([fails], tmp_path, Here()))
    result = Table(tmp_path).results()[fails]
    assert result["state"] == "failed"
    assert "lower the learning rate" in result["message"]
    assert "parameters" not in result
    assert not list(tmp_path.rglob("error.txt"))
    _the_table_is_enough([fails], tmp_path)


def _the_table_is_enough(jobs, root):
    shutil.rmtree(root / WORK)
    nobody = Nobody()
    assert all(result is not None for _, result, _ in run_jobs(jobs, root, nobody))
    assert nobody.asked == []


def _parameters_are_kept(result, root):
    kept = result["parameters"]
    file = root / MODELS / kept["file"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == kept["sha256"]
    # In the words of a command line: the settings that are not the task's own are there, too.
    assert kept["command"].startswith(f"taynode train {TASK} --scale smoke")
    run = lab.load(file, task=import_task(TASK))
    assert run.config.seed == 1
    # It is the model that was evaluated.
    evaluator = lab.Evaluator(run.task, run.config.evaluation, seed=run.config.seed)
    loss = evaluator.report(run.model, run.data.test, split="test")["loss"]
    assert loss == pytest.approx(result["row"]["test_loss"], rel=1e-5)


def _a_result_that_has_not_reached_the_table_is_picked_up(job, root):
    """As if this process had been killed when the worker had just ended."""
    result = Table(root).results()[job]
    Table(root).forget([job])
    directory = job.directory(root / WORK)
    directory.mkdir(parents=True)
    shutil.move(root / MODELS / result["parameters"]["file"], directory / PARAMETERS)
    write_json(directory / RESULT, row_of_result(result))
    nobody = Nobody()
    assert list(run_jobs([job], root, nobody)) == [(job, result, "")]
    assert nobody.asked == []
    assert Table(root).results()[job] == result
    assert (root / MODELS / result["parameters"]["file"]).exists()


def test_what_cannot_be_trusted_is_to_be_done_again(tmp_path):
    directory = job().directory(tmp_path / WORK)
    directory.mkdir(parents=True)
    (directory / RESULT).write_text("{")
    nobody = Nobody()
    assert list(run_jobs([job()], tmp_path, nobody)) == [(job(), None, "nobody was there")]
    assert nobody.asked == [job()]
    assert Table(tmp_path).results() == {}


def test_to_forget_is_to_do_again(tmp_path):
    for each in (job(0), job(1)):
        directory = each.directory(tmp_path / WORK)
        directory.mkdir(parents=True)
        write_json(directory / RESULT, row_of_result(result(each)))
    known, missing = known_and_missing([job(0), job(1)], tmp_path)
    assert (len(known), missing) == (2, [])
    forget([job(0)], tmp_path)
    known, missing = known_and_missing([job(0), job(1)], tmp_path)
    assert (len(known), missing) == (1, [job(0)])


def with_result(job, root):
    """The directory of a worker that has left a result."""
    directory = job.directory(root / WORK)
    directory.mkdir(parents=True)
    (directory / PARAMETERS).write_text("parameters")
    write_json(directory / RESULT, row_of_result(result(job)))
    return directory


def test_two_processes_that_collect_the_same_result(tmp_path, monkeypatch):
    """BUG, fixed: the parameters that one of them had just moved were missed by the other."""
    directory, replace = with_result(job(), tmp_path), os.replace

    def after_another(source, target):
        replace(source, target)
        if Path(source) == directory / PARAMETERS:
            replace(source, target)

    monkeypatch.setattr(os, "replace", after_another)
    found = collect(job(), tmp_path, Table(tmp_path))
    assert found == collect(job(), tmp_path, Table(tmp_path))
    assert Table(tmp_path).results() == {job(): found}
    assert [file.read_text() for file in (tmp_path / MODELS).iterdir()] == ["parameters"]


def test_a_kill_while_a_directory_is_cleared(tmp_path, monkeypatch):
    """BUG, fixed: without settings, the checkpoints that were left counted as those of a run."""
    directory = with_result(job(), tmp_path)
    (directory / "checkpoints").mkdir()
    for name in ("config.json", "job.json", ".job.1.tmp.json"):
        (directory / name).touch()
    listed = Path.iterdir

    def killed(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        # Directories are listed in any order.
        patch.setattr(Path, "iterdir", lambda path: iter(sorted(listed(path), reverse=True)))
        with pytest.raises(KeyboardInterrupt):
            clear(directory)
    assert (directory / "config.json").exists()
    clear(directory)
    assert {file.name for file in directory.iterdir()} == {"job.json", ".job.1.tmp.json"}


def test_to_wait_for_a_worker_is_to_say_so(tmp_path):
    directory = with_result(job(), tmp_path)
    held = exclusive(directory / LOCK)
    held.__enter__()
    said = []

    def say(message):
        said.append(message)
        held.__exit__(None, None, None)

    forget([job()], tmp_path, say=say)
    assert said == [f"Waiting for a run in {directory}, which another process executes."]
    assert not (directory / RESULT).exists()
