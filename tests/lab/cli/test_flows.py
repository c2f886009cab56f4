"""What is told and drawn of a trained flow."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from taynode import lab
from taynode.lab import RegularizerConfig, SolveConfig
from taynode.lab.cli import main
from taynode.lab.report.page import write_report
from taynode.lab.report.record import record_samples
from taynode.lab.report.samples import read_samples

from ..rows import without_penalties


HERE = Path(__file__).parents[1] / "training"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)
        task = lab.import_task("tiny_task:TinyFlow")
        path = tmp_path_factory.mktemp("runs") / "flow"
        quick = {
            "epochs": 1,
            "num_evaluations": 1,
            "training": SolveConfig(solver="euler", steps=2),
            # Steps of equal length take less time to compile.
            "evaluation": SolveConfig(solver="euler", steps=8),
            "regularizer": RegularizerConfig(),
        }
        settings = dataclasses.replace(task.defaults("smoke"), **quick)
        with without_penalties():
            lab.train(settings, task, path, on_finish=record_samples)
    return path


@pytest.fixture
def told(run, monkeypatch, capsys):
    def call(command, *words):
        monkeypatch.chdir(HERE)
        with pytest.raises(SystemExit) as stop:
            main([command, str(run), "--task", "tiny_task:TinyFlow", *map(str, words), "--json"])
        assert not stop.value.code
        return json.loads(capsys.readouterr().out)

    return call


@pytest.mark.slow
def test_row_tells_sampling_apart(run):
    row = lab.RunDirectory(run).rows()[-1]
    assert row["test_sampling_nfe"] > 0
    assert read_samples(run)["test_nfe"].mean() == row["test_nfe"] > 0


def test_samples(told, tmp_path):
    file = tmp_path / "drawn.npy"
    answer = told("sample", "--num", 30, "--out", file)
    assert np.load(file, allow_pickle=False).shape == (30, 2)
    assert answer["nfe"] > 0
    assert Path(answer["picture"]).read_bytes().startswith(b"\x89PNG")


def test_density(told, tmp_path):
    answer = told("density", "--points", 60, "--out", tmp_path / "density.png")
    assert Path(answer["picture"]).read_bytes().startswith(b"\x89PNG")
    assert answer["integral"] == pytest.approx(1.0, abs=0.01)


def test_page_shows_data_density_and_samples(run, tmp_path):
    page = write_report([run], tmp_path / "page.html").read_text()
    # pytest would take longer to show the difference than the page takes to write.
    shown = ["What the flow has learned", *(f"density-{i}" for i in range(3))]
    assert [text for text in shown if text not in page] == []
