"""`taynode sweep` as a user meets it."""

import json
from pathlib import Path

import pytest

from taynode.lab.cli import main
from taynode.lab.config import from_dict, TrainConfig
from taynode.lab.sweep.table import Table

from ..sweep.pretend import WORKER


TASK = "tiny_task:Tiny"
TEXT = """
scale = "smoke"
[settings]
regularizer = "r2"
"""
GRID = TEXT + "[grid]\nweight = [0.0, 0.1]"
SEARCH = TEXT + "[search]\ntrials = 3\nspace.weight = {low = 0.1, high = 1.0}"

# Of a metric that depends on the task, as far as the file is concerned.
WRONG = "seeds = 3\nobjectives = ['train_nfe', 'train_los']"


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Where the tiny task is, whose runs are made up."""
    monkeypatch.chdir(Path(__file__).parents[1] / "training")
    monkeypatch.setattr("taynode.lab.cli.sweep.WORKER", WORKER)


@pytest.fixture
def sweep(capsys, tmp_path):
    """Writes files and calls the program: its exit code, and what it printed."""

    def call(files, *words):
        for name, text in files.items():
            (tmp_path / f"{name}.toml").write_text(text)
        code = 0
        try:
            paths = [str(tmp_path / f"{name}.toml") for name in files]
            main(["sweep", *paths, "--out", str(tmp_path), *words])
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return call


def test_a_grid_and_a_search(sweep, tmp_path):
    code, out, err = sweep({"grid": GRID, "search": SEARCH}, "--task", TASK)
    assert code == 0
    assert "grid: 2 of 2 runs" in err
    assert "search: 3 of 3 runs" in err
    assert "on the front" in out
    assert f"Figure: {tmp_path / 'smoke' / 'sweeps' / 'grid-search'}.png" in out
    for suffix in (".png", ".svg"):
        assert (tmp_path / "smoke" / "sweeps" / f"grid-search{suffix}").exists()
    # All runs are in one table, with all of their settings.
    results = Table(tmp_path / "smoke" / "runs").results()
    assert len(results) == 5
    weights = {from_dict(TrainConfig, x["config"]).regularizer.weight for x in results.values()}
    assert {0.0, 0.1} < weights
    # Called again, nothing is done, and the points are the same.
    code, again, err = sweep({"grid": GRID, "search": SEARCH}, "--task", TASK, "--json")
    assert (code, err) == (0, "")
    grid, search = map(json.loads, again.splitlines())
    assert [row["weight"] for row in grid["points"]] == [0.1, 0.0]
    assert all(row["on the front"] == "yes" for row in search["points"])
    assert len(Table(tmp_path / "smoke" / "runs").results()) == 5


def test_a_search_of_which_nothing_could_be_done(sweep):
    """Its values exclude each other: each of them decides the weight."""
    text = SEARCH.replace("\n[settings]", "\n[settings]\nbudget = 20")
    code, _, err = sweep({"none": text}, "--task", TASK)
    assert code == 2
    assert "no trial has values that fit each other: Give one of `weight` and `budget`" in err


@pytest.mark.parametrize(
    ("files", "words", "message"),
    [
        ({}, [], "`configs`: name at least one TOML file"),
        ({"a": "task = "}, [], "is not valid TOML"),
        ({"a": f'task = "{TASK}"\n{GRID}'}, [], "a task that a file names is never imported"),
        ({"a": f'task = "digit"\n{GRID}'}, [], "did you mean 'digits'"),
        ({"a": GRID}, [], "`a` needs a task"),
        ({"a": GRID, "b": GRID.replace("smoke", "laptop")}, ["--task", TASK], "one scale"),
        ({"a": GRID}, ["--task", TASK, "--executor", "cloud"], "`executor` 'cloud' is not known"),
        ({"a": "objectives = ['x', 'train_loss']" + GRID}, ["--task", TASK], "`objectives` 'x'"),
        ({"a": WRONG + GRID}, ["--task", TASK, "--jobs", "1"], "did you mean 'train_loss'"),
        ({"a": WRONG + SEARCH}, ["--task", TASK, "--jobs", "1"], "did you mean 'train_loss'"),
    ],
)
def test_bad_input(sweep, tmp_path, files, words, message):
    code, out, err = sweep(files, *words)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    # BUG, fixed: a wrong objective was an error when all runs had ended.
    assert len(list(tmp_path.rglob("result.json"))) <= 1


@pytest.mark.parametrize(("text", "count"), [(GRID, 2), (SEARCH, 3)], ids=["grid", "search"])
def test_runs_that_could_not_be_done_are_an_error(sweep, tmp_path, monkeypatch, text, count):
    """BUG, fixed: the exit code was 0, and with `--json` nothing was said."""
    monkeypatch.setattr("taynode.lab.cli.sweep.WORKER", "no.such.worker")
    code, out, err = sweep({"none": text}, "--task", TASK, "--json")
    assert code == 1
    assert f"error: none: {count} runs could not be done, such as: " in err
    assert "No module named 'no'" in err
    # What there is has been written, before.
    assert json.loads(out)["sweep"] == "none"
    assert (tmp_path / "smoke" / "sweeps" / "none.png").exists()
