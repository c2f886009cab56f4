"""The file: complete, safe, and honest about what is missing."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from taynode.lab.report.page import write_report
from taynode.lab.report.runs import read_run
from taynode.lab.report.samples import read_samples

from .synthetic import make_config, make_rows, make_samples, write_pair, write_run


def text_of(paths, out):
    return write_report(paths, out).read_text(encoding="utf-8")


def test_page_needs_nothing_else(tmp_path):
    runs = write_pair(tmp_path / "runs", error=True)
    file = write_report(runs, tmp_path / "new" / "report.html")
    text = file.read_text(encoding="utf-8")
    for forbidden in ('src="', "@import", "url(", str(tmp_path)):
        assert forbidden not in text.partition('id="library"')[0]
    assert text.count('id="library"') == 1
    assert file.stat().st_size < 3e6
    assert [path.name for path in file.parent.iterdir()] == ["report.html"]
    for shown in ("cuts evaluations from 41.8 to 27.4", "What differs", "<mark>r2</mark>"):
        assert shown in text
    assert "To be taken with care" not in text


def test_same_runs_same_bytes(tmp_path):
    runs = write_pair(tmp_path / "runs")
    first, second = (write_report(runs, tmp_path / name) for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_text_of_configurations_is_escaped(tmp_path):
    evil = "</script><script>alert(1)</script>&<b>"
    config = make_config("r2", 0.1, task=evil)
    config["regularizer"]["name"] = evil
    config[evil] = evil
    environment = {evil: evil}
    run = write_run(
        tmp_path / "<i>run",
        config=config,
        rows=make_rows(30.0, None),
        samples=make_samples(32),
        environment=environment,
    )
    text = text_of([run], tmp_path / "report.html")
    assert "<script>alert" not in text
    assert "<i>run" not in text
    assert "&lt;script&gt;alert(1)" in text


def with_nan(rows):
    return [row | {"test_loss": math.nan, "train_loss": math.inf} for row in rows]


BROKEN = {
    "no samples": ({"samples": None}, "samples.npz is missing"),
    "one row": ({"rows": make_rows(30.0, 0.1, num_rows=1)}, "has a single row"),
    "no rows": ({"rows": []}, "has no rows"),
    "no metrics": ({"rows": None}, "metrics.jsonl is missing"),
    "no config": ({"config": None}, "config.json is missing"),
    "no environment": ({"environment": None}, "environment.json is missing"),
    "not finite": ({"rows": with_nan(make_rows(30.0, 0.1))}, "Not finite in the last row: test_"),
    "early": ({"rows": make_rows(30.0, 0.1)[:3]}, "ended early: at epoch 4 of 10"),
    "failed": (
        {"rows": [make_rows(30.0, 0.1)[-1] | {"test_num_failed": 3}]},
        "failed for 3 of 200",
    ),
    "odd samples": (
        {"samples": {"train_nfe": np.array([20, 26]), "path_times": np.zeros(1)}},
        None,
    ),
    "odd values": (
        {"rows": [{"step": 1, "test_nfe": "many"}, {"step": 2}]},
        "Nothing was measured",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_missing_pieces_are_named(tmp_path, name):
    changes, note = BROKEN[name]
    whole = {
        "config": make_config("r2", 0.1),
        "rows": make_rows(30.0, 0.1),
        "samples": make_samples(32),
    }
    run = write_run(tmp_path / "run", **(whole | changes))
    text = text_of([run], tmp_path / "report.html")
    assert note is None or note in text


def test_damaged_files_are_named(tmp_path):
    run = write_run(tmp_path / "run", config=make_config(), rows=make_rows(30.0, 0.1))
    (run / "config.json").write_text("{")
    (run / "environment.json").write_text("[]")
    (run / "samples.npz").write_bytes(b"PK\x03\x04 and then nothing")
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"step": 600, "test_l')
    notes = " ".join(read_run(run).notes)
    assert "config.json cannot be read" in notes
    assert "environment.json is not a table" in notes
    assert "samples.npz cannot be read" in notes
    assert "metrics.jsonl is damaged behind row 6" in notes
    text_of([run], tmp_path / "report.html")


def test_a_run_without_anything_beside_whole_ones(tmp_path):
    runs = write_pair(tmp_path)
    bare = write_run(tmp_path / "bare", rows=[], environment=None)
    text = text_of([*runs, bare], tmp_path / "report.html")
    assert "<b>bare</b>: config.json is missing." in text
    assert "Environments differ" not in text
    assert "cuts evaluations from 41.8 to 27.4" in text


def test_samples_are_read_without_pickle(tmp_path):
    np.savez(tmp_path / "samples.npz", train_nfe=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        read_samples(tmp_path)


def test_page_does_not_import_jax(tmp_path):
    runs = write_pair(tmp_path)
    code = (
        "import sys; import taynode.lab.report.page, taynode.lab.report.table as t;"
        f"t.compare_table({[str(run) for run in runs]!r});"
        "print(sorted({'jax', 'plotly', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == []
