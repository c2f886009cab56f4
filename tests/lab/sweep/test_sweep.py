"""Sweeps: what has been done is not done again, and what cannot be trusted is."""

import dataclasses
import json
from pathlib import Path

import polars
import pytest

from taynode import lab
from taynode.lab.config import OptimizerConfig, RegularizerConfig, SolveConfig
from taynode.lab.sweep.executor import AbstractExecutor, Done, LocalExecutor
from taynode.lab.sweep.plan import EvaluationConfig, Job, job_from_dict
from taynode.lab.sweep.results import result_of, run_jobs, write_table


HERE = Path(__file__).parents[1] / "training"
TIGHT = EvaluationConfig("tight", SolveConfig(rtol=1e-9, atol=1e-9), "float64", 5, ("test",))


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Where the tiny task is."""
    monkeypatch.chdir(HERE)


def job(seed=0, **changes):
    task = lab.find_task("tiny_task:Tiny")
    # What compiles in no time.
    euler = SolveConfig(solver="euler", steps=2)
    plain = {"training": euler, "evaluation": euler, "regularizer": RegularizerConfig()}
    defaults = dataclasses.replace(task.defaults("smoke"), **plain)
    config = dataclasses.replace(defaults, epochs=1, num_evaluations=1, seed=seed)
    return Job(dataclasses.replace(config, **changes), (TIGHT,))


DIVERGING = {"optimizer": OptimizerConfig("sgd", 1e12), "regularizer": RegularizerConfig()}


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
    fails = job(epochs=8, **DIVERGING)
    broken = Job(dataclasses.replace(job().config, task="nowhere:Task"))
    jobs = [job(0), job(1), fails, job(0)]
    ended = list(run_jobs([broken, *jobs], tmp_path, LocalExecutor(2)))
    assert {j.identity for j, _, _ in ended} == {j.identity for j in [broken, *jobs]}
    # A job that cannot be done does not stop the others.
    errors = {j.identity: (result, error) for j, result, error in ended if error}
    (nothing, error) = errors.pop(broken.identity)
    assert nothing is None
    assert "there is no module 'nowhere'" in error
    assert errors == {}
    for found in (result_of(job(0), tmp_path), result_of(job(1), tmp_path)):
        assert found is not None
        assert found["state"] == "finished"
        assert found["row"]["step"] == 4
        assert found["evaluations"]["tight"]["test_nfe"] > found["row"]["test_nfe"]
        assert found["evaluations"]["tight"]["test_num_samples"] == 5
    # A run that fails is a result: it is not tried again, and says why.
    failed = result_of(fails, tmp_path)
    assert failed is not None
    assert failed["state"] == "failed"
    assert "lower the learning rate" in failed["message"]
    table = write_table(tmp_path).read_text().splitlines()
    assert {json.loads(line)["identity"] for line in table} == {
        j.identity for j in (job(0), job(1), fails)
    }
    columns = polars.read_parquet(tmp_path / "runs.parquet").sort("state", "config.seed")
    assert columns["state"].to_list() == ["failed", "finished", "finished"]
    assert columns["config.seed"].to_list() == [0, 0, 1]
    assert columns["evaluations.tight.test_num_samples"].to_list() == [None, 5, 5]

    # All is there: nobody is asked.
    nobody = Nobody()
    assert all(result is not None for _, result, _ in run_jobs(jobs, tmp_path, nobody))
    assert nobody.asked == []

    # What cannot be trusted is to be done again.
    (job(1).directory(tmp_path) / "result.json").write_text("{")
    _, nothing, error = next(iter(run_jobs([job(1)], tmp_path, nobody)))
    assert nothing is None
    assert error == "nobody was there"
    # Errors are kept only of what went wrong.
    assert [file.parent.name for file in tmp_path.rglob("error.txt")] == [broken.identity]
