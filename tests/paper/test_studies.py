"""Studies from their runs to their claims."""

import json

import pytest

from taynode.cli import main
from taynode.paper import Claim, find_study, STUDIES
from taynode.paper.run import run_study
from taynode.sweep.executor import LocalExecutor
from taynode.training.config import ConfigError


def test_every_study_can_be_found():
    for name in STUDIES:
        study = find_study(name)
        assert study.name == name
        assert study.title
        assert all(job.identity for job in study.jobs("smoke", [0]))
    with pytest.raises(ConfigError, match="did you mean 'fig1-toy'"):
        find_study("fig1")


def test_verdict_is_a_known_word():
    with pytest.raises(ConfigError, match="verdict"):
        Claim("", "", "", "perhaps")


def test_steps_of_figure_2_are_those_of_correct_solvers(tmp_path):
    study = find_study("fig2-solver-order")
    (claim,) = run_study(study, tmp_path, scale="smoke", seeds=[0], executor=LocalExecutor(1))
    assert claim.verdict == "holds"
    told = json.loads((tmp_path / "fig2-solver-order.json").read_text())
    steps = told["numbers"]["steps"]
    # Measured with the released code, whose solvers of these names are correct.
    assert steps["fehlberg12"] == [8, 2911, 4896, 6858, 8768, 10716]
    assert steps["bosh3"] == [7, 7, 1209, 1862, 2474, 3089]
    assert steps["owren_zennaro4"] == [6, 7, 7, 330, 482, 624]
    assert steps["dopri5"] == [5, 7, 7, 7, 60, 87]
    assert (tmp_path / "fig2-solver-order.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "fig2-solver-order.svg").read_text()[:1000]


def test_cost_of_derivatives(tmp_path):
    study = find_study("taylor-cost")
    claims = run_study(study, tmp_path, scale="smoke", seeds=[0], executor=LocalExecutor(1))
    # Times are not asserted.
    assert len(claims) == 2
    numbers = json.loads((tmp_path / "taylor-cost.json").read_text())["numbers"]
    assert numbers["orders"] == [1, 2, 3]
    assert all(min(numbers[method]) > 0 for method in ("Taylor mode", "nested jvp"))


def test_figure_1_by_command(tmp_path, capsys):
    words = ["paper", "run", "fig1-toy", "--scale", "smoke", "--seeds", "1", "--json"]
    with pytest.raises(SystemExit) as stop:
        main([*words, "--out", str(tmp_path)])
    assert not stop.value.code
    claims = json.loads(capsys.readouterr().out)["fig1-toy"]
    assert len(claims) == 3
    # A single seed decides nothing.
    assert {claim["verdict"] for claim in claims} == {"undecided"}
    assert all("and" in claim["measured"] for claim in claims)
    assert (tmp_path / "smoke" / "fig1-toy.png").exists()
    rows = (tmp_path / "smoke" / "runs" / "runs.jsonl").read_text().splitlines()
    assert [json.loads(row)["state"] for row in rows] == ["finished", "finished"]
