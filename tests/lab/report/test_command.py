"""The printed command makes the same configuration."""

import dataclasses
import shlex

import pytest

from taynode.lab import find_task
from taynode.lab.cli import app, display
from taynode.lab.config import RegularizerConfig, SolveConfig, to_dict
from taynode.lab.report.command import reproduce


def toy(**changes):
    return dataclasses.replace(find_task("toy").defaults("smoke"), **changes)


def test_only_what_is_not_the_default():
    config = to_dict(toy(regularizer=RegularizerConfig("r2", 0.1), seed=3))
    assert reproduce(config) == (
        "taynode train toy --scale smoke --regularizer r2 --weight 0.1 --seed 3"
    )


def test_without_a_task_there_is_no_command():
    assert reproduce({}) == ""


def test_words_are_quoted():
    command = reproduce({"task": "my task:$(rm)", "seed": 1})
    assert command == "taynode train 'my task:$(rm)' --scale laptop --seed 1"


CONFIGS = {
    "defaults": {},
    "tolerances": {
        "training": SolveConfig(rtol=1e-7, atol=1e-6),
        "evaluation": SolveConfig(rtol=1e-7, atol=1e-6),
    },
    "evaluation": {"evaluation": SolveConfig(rtol=1e-8, atol=1e-9, solver="tsit5")},
    "grid": {"training": SolveConfig(rtol=1e-6, atol=1e-6, solver="rk4", steps=8)},
    "regularizer": {
        "regularizer": RegularizerConfig("rnode", 1 / 3, "warmup", 0.25, points=2, kinetic=0.5),
        "joint": True,
        "epochs": 7,
    },
    "double": {"precision": "float64", "batch_size": 50, "eval_samples": 11},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_command_line_reads_it_back(name, monkeypatch, tmp_path):
    config = toy(**CONFIGS[name])
    seen = []
    monkeypatch.setattr(
        display, "run", lambda settings, *args, **kwargs: seen.append(settings) or {}
    )
    program, *words = shlex.split(reproduce(to_dict(config)))
    assert program == "taynode"
    app(words, exit_on_error=False, print_error=False, result_action="return_value")
    assert seen == [config]
