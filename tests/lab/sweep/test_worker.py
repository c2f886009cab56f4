"""One job: what is left of it is used, unless it cannot be trusted."""

import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from taynode.lab import CheckpointError, import_task
from taynode.lab.config import ConfigError
from taynode.lab.files import write_json
from taynode.lab.sweep.config import METRICS
from taynode.lab.sweep.directory import RESULT
from taynode.lab.sweep.plan import Job
from taynode.lab.sweep.work import _why_not, do
from taynode.lab.sweep.worker import ATTACHED, main
from taynode.lab.training.records import RunDirectory
from tests.lab.rows import without_penalties
from tests.lab.sweep.test_sweep import HERE, job, TASK


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Where the tiny task is; a worker chooses the precision."""
    monkeypatch.chdir(HERE)
    yield
    jax.config.update("jax_enable_x64", True)


@pytest.fixture(scope="module")
def task_job():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)
        yield Job(job().config)


@pytest.fixture(scope="module")
def once(task_job, tmp_path_factory):
    path = tmp_path_factory.mktemp("once")
    write_json(path / "job.json", task_job.as_dict())
    with without_penalties():
        assert main([str(path / "job.json"), str(path), "--task", TASK]) == 0
    return path


@pytest.fixture
def done(once, tmp_path):
    """The directory of a job that has been done."""
    return Path(shutil.copytree(once, tmp_path / "run"))


def without_a_row(directory):
    """As if its last row had been lost: the checkpoint is behind it."""
    file = directory / "metrics.jsonl"
    file.write_text(file.read_text().splitlines()[0] + "\n\xff")
    return "lacks the evaluations of steps 4"


def without_checkpoints(directory):
    for file in directory.glob("checkpoints/step_*"):
        file.write_bytes(b"nonsense")
    return "None of the checkpoints can be used"


def on_other_data(directory):
    file = directory / "environment.json"
    write_json(file, json.loads(file.read_text()) | {"data_digest": "another"})
    return "begun on other data"


@pytest.mark.usefixtures("no_penalties")
@pytest.mark.parametrize(
    "spoil",
    [
        without_a_row,
        pytest.param(without_checkpoints, marks=pytest.mark.slow),
        pytest.param(on_other_data, marks=pytest.mark.slow),
    ],
)
def test_what_cannot_be_trusted_is_done_again(done, task_job, spoil):
    before = json.loads((done / RESULT).read_text())
    (done / RESULT).unlink()
    expected = spoil(done)
    again = do(task_job, done, import_task(TASK), {})
    assert expected in again["redone"]
    # The place of a run says nothing to others, and is none of their business.
    assert str(done.parent) not in again["redone"]
    assert again["state"] == "finished"
    assert again["row"]["test_loss"] == before["row"]["test_loss"]


def test_checkpoints_that_cannot_be_read_for_a_moment_are_not_cleared(done, task_job, monkeypatch):
    (done / RESULT).unlink()
    real = Path.read_bytes

    def unreachable(file):
        if file.suffix == ".ckpt":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(file))
        return real(file)

    files = sorted(done.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", unreachable)
        with pytest.raises(CheckpointError, match="Input/output error") as caught:
            do(task_job, done, import_task(TASK), {})
    assert isinstance(caught.value.__cause__, OSError)
    assert sorted(done.rglob("*")) == files
    assert "redone" not in do(task_job, done, import_task(TASK), {})


def test_a_damaged_result_is_made_from_what_else_there_is(done, task_job):
    (done / RESULT).write_text("{")
    again = do(task_job, done, import_task(TASK), {})
    assert RESULT in again["redone"]
    assert again["row"]["train_seconds"] == json.loads(_last(done))["train_seconds"]


def test_the_known_objectives_of_a_sweep_are_those_of_a_row(once):
    """Those that begin with a split may be metrics of a task."""
    row = json.loads((once / RESULT).read_text())["row"]
    numbers = {name for name, value in row.items() if type(value) is float} - {"epoch"}
    of_splits = {name for name in numbers if name.startswith(("train_", "test_"))}
    # Left out here, see `without_penalties`; the others need another task or regularizer.
    missing = {"r2", "r3", "kinetic", "jacobian", "penalty", "valid_loss"}
    missing |= {"train_error", "test_error"}
    assert set(METRICS) - missing <= numbers
    assert numbers - of_splits <= set(METRICS)


def test_other_settings_are_noticed(task_job, tmp_path):
    run = RunDirectory(tmp_path)
    assert _why_not(task_job.config, run) == ""
    run.create(task_job.config)
    assert _why_not(task_job.config, run) == ""
    # As if the default of a setting had changed since: checkpoints are not known by it.
    more = task_job.config.final_samples + 1
    other = dataclasses.replace(task_job.config, final_samples=more)
    assert _why_not(other, run) == "It was begun with other settings."
    (tmp_path / "config.json").write_text('{"task": ')
    assert "not readable as JSON" in _why_not(task_job.config, run)


def _last(directory):
    return (directory / "metrics.jsonl").read_text().splitlines()[-1]


def test_an_error_of_the_caller_costs_no_checkpoints(done, task_job, monkeypatch, tmp_path):
    (done / RESULT).unlink()
    kept = sorted(path.name for path in (done / "checkpoints").iterdir())
    # Nobody has named the task.
    assert main([str(done / "job.json"), str(done)]) == 1
    assert sorted(path.name for path in (done / "checkpoints").iterdir()) == kept
    # It cannot be found from another folder.
    with monkeypatch.context() as elsewhere:
        elsewhere.delitem(sys.modules, "tiny_task", raising=False)
        elsewhere.setattr(sys, "path", [x for x in sys.path if x not in ("", str(HERE))])
        elsewhere.chdir(tmp_path.parent)
        assert main([str(done / "job.json"), str(done), "--task", TASK]) == 1
    assert sorted(path.name for path in (done / "checkpoints").iterdir()) == kept
    # There is too little data, for now.
    small = Job(dataclasses.replace(task_job.config, batch_size=1000))
    write_json(done / "config.json", small.as_dict()["config"])
    with pytest.raises(ConfigError, match="batch_size"):
        do(small, done, import_task(TASK), {})
    assert sorted(path.name for path in (done / "checkpoints").iterdir()) == kept


def test_a_worker_ends_with_whoever_started_it(task_job, tmp_path):
    long = Job(dataclasses.replace(task_job.config, epochs=100_000))
    file = tmp_path / "job.json"
    write_json(file, long.as_dict())
    words = [sys.executable, "-m", "taynode.lab.sweep.worker", str(file), str(tmp_path), ATTACHED]
    words += ["--task", TASK]
    process = subprocess.Popen(words, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 1
    assert not (tmp_path / RESULT).exists()


def test_the_last_line_of_errors_says_what_is_wrong(tmp_path, capfd):
    broken = Job(dataclasses.replace(job().config, task="nowhere:Task"))
    write_json(tmp_path / "job.json", broken.as_dict())
    assert main([str(tmp_path / "job.json"), str(tmp_path), "--task", "nowhere:Task"]) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith("ConfigError: ")
    assert "nowhere" in last
