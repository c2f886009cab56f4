"""A run is data: no command imports a module because a file of the run names it."""

import dataclasses
import json
import sys

import jax
import pytest

from taynode import lab
from taynode.lab.cli import main
from taynode.lab.config import to_dict
from taynode.lab.files import write_json
from taynode.lab.sweep.plan import Job
from taynode.lab.sweep.worker import main as work


EVIL = """
from pathlib import Path
Path(__file__).with_name("executed").touch()
class Task: ...
def measure(directory): return {}
"""


@pytest.fixture
def downloaded(tmp_path, monkeypatch):
    """The working directory holds a run, and the module that the run's files name."""
    (tmp_path / "evil.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # Not the module of an earlier test, whose import would do nothing.
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    run = tmp_path / "run"
    lab.RunDirectory(run).create(dataclasses.replace(toy(), task="evil:Task"))
    row = {"step": 0, "epoch": 0.0, "seed": 0, "test_loss": 1.0, "test_nfe": 8.0}
    (run / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    yield run
    # Also those that train: a worker chooses the precision.
    jax.config.update("jax_enable_x64", True)
    assert not (tmp_path / "executed").exists()


def toy():
    quick = {"epochs": 1, "num_evaluations": 1}
    return dataclasses.replace(lab.find_task("toy").defaults("smoke"), **quick)


def call(*words):
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    return stop.value.code


@pytest.mark.parametrize("command", ["evaluate", "sample", "density", "advise", "ease"])
def test_a_command_does_not_import_the_task_that_a_run_names(downloaded, capsys, command):
    assert call(command, downloaded) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "`task` 'evil:Task' is not a built-in task" in told
    assert "--task evil:Task" in told
    assert "`task=`" in told


def test_a_reference_does_not_import_the_task_that_it_names(downloaded, capsys):
    words = "--scale", "smoke", "--within", "1%", "--reference", downloaded
    assert call("train", "toy", *words) == 2
    assert "is a run of evil:Task" in " ".join(capsys.readouterr().err.split())


def test_load_does_not_import_the_task_that_a_run_names(downloaded):
    with pytest.raises(lab.ConfigError, match="'evil:Task' is not a built-in task"):
        lab.load(downloaded)


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_page_does_not_import_the_task_that_a_run_names(downloaded, command):
    assert not call(command, downloaded, "--out", "page.html")


def test_resuming_does_not_import_the_task_that_a_run_names(downloaded, capsys):
    words = "--scale", "smoke", "--out", downloaded, "--resume"
    assert call("train", "toy", *words) != 0
    assert "Traceback" not in capsys.readouterr().err


def test_settings_do_not_import_the_task_that_they_name(downloaded, monkeypatch):
    monkeypatch.setattr("taynode.lab.cli.display.run", lambda *args, **kwargs: {})
    (downloaded / "settings.toml").write_text('task = "evil:Task"\n')
    call("train", "toy", "--config", downloaded / "settings.toml", "--json")


def test_a_worker_does_not_import_the_task_that_its_job_names(downloaded, capsys):
    job = Job(dataclasses.replace(toy(), task="evil:Task"))
    write_json(downloaded / "job.json", job.as_dict())
    assert work([str(downloaded / "job.json"), str(downloaded)]) == 1
    assert "'evil:Task' is not a built-in task" in capsys.readouterr().err


def test_a_worker_does_not_import_the_measurement_that_its_job_names(tmp_path, downloaded, capsys):
    job = {"config": to_dict(toy()), "evaluations": [], "measurements": ["evil:measure"]}
    directory = tmp_path / "work"
    directory.mkdir()
    write_json(directory / "job.json", job)
    assert work([str(directory / "job.json"), str(directory)]) == 1
    assert "`measurements` 'evil:measure' is not known" in capsys.readouterr().err
    # It is refused before hours of training, not after.
    assert not (directory / "config.json").exists()
