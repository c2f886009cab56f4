"""Searches: no trial is lost, whatever is killed, and none is done twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taynode.lab.config import ConfigError
from taynode.lab.sweep.executor import AbstractExecutor, Done, LocalExecutor
from taynode.lab.sweep.points import front_of, points_of
from taynode.lab.sweep.results import WORK
from taynode.lab.sweep.table import Table

from .pretend import SECONDS, WORKER
from .searching import make, TRIALS


def start(root, seconds):
    words = [sys.executable, "-m", "tests.lab.sweep.searching", str(root)]
    environment = {**os.environ, SECONDS: str(seconds)}
    return subprocess.Popen(words, cwd=Path(__file__).parents[3], env=environment)


def states(search):
    return [trial.state.name for trial in search.study.get_trials()]


def attempts(root):
    files = (root / "runs" / WORK).glob("*/attempts.txt")
    return [len(file.read_text()) for file in files]


def check_all_done(root):
    search = make(root)
    assert states(search) == ["COMPLETE"] * TRIALS
    assert search.num_open() == 0
    results = Table(root / "runs").results()
    # Each trial has runs of its own, which are kept once.
    assert len(results) == TRIALS
    assert len((root / "runs" / "toy.jsonl").read_text().splitlines()) == TRIALS
    for trial in search.study.get_trials():
        (job,) = search.config.jobs(trial.params, search.defaults)
        row = results[job]["row"]
        assert trial.values == [row["train_nfe"], row["train_loss"]]
        assert isinstance(trial.params["epochs"], int)
    points = points_of(search.config, search.choices(), search.defaults, results)
    front = front_of(points, search.config.objectives)
    # Evaluations fall as the loss rises, by construction.
    assert len(front) == TRIALS
    return search


def test_a_search_that_is_killed_continues(tmp_path):
    """Two processes share it. One is killed, its journal is cut, and a third one ends it."""
    journal = tmp_path / "made.journal"
    processes = [start(tmp_path, 0.5) for _ in range(2)]
    end = time.monotonic() + 120
    while len(attempts(tmp_path)) < 5:
        assert time.monotonic() < end
        time.sleep(0.02)
    for process in processes:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with open(journal, "ab") as stream:
        stream.write(b'{"op_code": 4, "cut off')
    before = make(tmp_path)
    assert before.num_open() > 0
    choices = {trial.number: trial.params for trial in before.study.get_trials() if trial.params}
    assert start(tmp_path, 0).wait(120) == 0
    after = check_all_done(tmp_path).study.get_trials()
    # The trials that were open are the same ones.
    assert all(after[number].params == params for number, params in choices.items())
    # Nothing is left to do, and only what was running was done twice.
    nobody = Nobody()
    make(tmp_path).run(nobody)
    assert nobody.asked == []
    assert max(attempts(tmp_path)) <= 2
    assert [path.name for path in tmp_path.glob(".made.*")] == [".made.lock"]


def test_processes_share_a_search(tmp_path):
    processes = [start(tmp_path, 0) for _ in range(3)]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    check_all_done(tmp_path)
    assert attempts(tmp_path) == [1] * TRIALS


class Nobody(AbstractExecutor):
    """Cannot execute anything."""

    def __init__(self):
        self.asked = []

    def execute(self, jobs, root):
        for job in jobs:
            self.asked.append(job)
            yield Done(job, "nobody was there")


def test_a_run_that_could_not_be_done_is_tried_again(tmp_path):
    nobody, progress = Nobody(), []
    make(tmp_path, trials=3).run(nobody, on_progress=progress.append)
    assert len(nobody.asked) == 3
    assert progress[-1].failed == 3
    assert states(make(tmp_path, trials=3)) == ["RUNNING"] * 3
    make(tmp_path, trials=3).run(LocalExecutor(1, worker=WORKER))
    assert states(make(tmp_path)) == ["COMPLETE"] * 3
    # More trials than before are possible, another space is not.
    make(tmp_path, trials=4).run(LocalExecutor(1, worker=WORKER))
    assert states(make(tmp_path)) == ["COMPLETE"] * 4
    with pytest.raises(ConfigError, match="was begun with other settings"):
        make(tmp_path, space={"weight": [0.1, 0.2]})


def test_values_that_exclude_each_other_cost_no_run(tmp_path):
    nobody = Nobody()
    space = {"weight": [0.1], "budget": [10.0, 20.0], "regularizer": ["r2"]}
    search = make(tmp_path, trials=3, space=space)
    with pytest.raises(ConfigError, match="no trial has values that fit each other: Give one of"):
        search.run(nobody)
    assert nobody.asked == []
    assert states(search) == ["FAIL"] * 3


def test_the_same_choice_is_done_once(tmp_path):
    search = make(tmp_path, trials=5, space={"weight": [0.1], "regularizer": ["r2"]})
    search.run(LocalExecutor(2, worker=WORKER))
    assert states(search) == ["COMPLETE"] * 5
    assert attempts(tmp_path) == [1]
