"""All studies by one command, also if it is killed in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from taynode.lab.paper import find_study, STUDIES
from taynode.lab.sweep.worker import RESULT


pytestmark = pytest.mark.slow
SECONDS = 3600


def start(out):
    """`taynode paper all`, as the leader of a group of processes."""
    words = ["paper", "all", "--scale", "smoke", "--seeds", "1", "--out", str(out)]
    # The tests' own settings of the compiler are not what users have.
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    with open(log_of(out), "a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "taynode.lab.cli", *words],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def log_of(out):
    return out.with_suffix(".log")


def finish(process, out):
    assert process.wait(timeout=SECONDS) == 0, log_of(out).read_text()


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if "seconds" not in k}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def table(root) -> list[dict[str, Any]]:
    rows = map(json.loads, (root / "smoke" / "runs" / "runs.jsonl").read_text().splitlines())
    # That a run was begun anew is told, but does not change it.
    return [without_times({k: v for k, v in row.items() if k != "redone"}) for row in rows]


def every_study_is_done(out) -> None:
    for name in STUDIES:
        told = json.loads((out / "smoke" / f"{name}.json").read_text())
        assert told["claims"], name
        assert told["numbers"], name
        assert (out / "smoke" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert name in (out / "smoke" / "index.html").read_text()
    expected = {job.identity for name in STUDIES for job in find_study(name).jobs("smoke", [0])}
    assert {row["identity"] for row in table(out)} == expected


def test_all_studies_and_the_same_if_killed_and_resumed(tmp_path):
    """Also a result and a checkpoint that were spoiled meanwhile are redone, not trusted.

    One test, since several might be done at the same time, and each would need all studies.
    """
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    finish(start(undisturbed), undisturbed)
    every_study_is_done(undisturbed)
    half = len(table(undisturbed)) // 2
    runs = disturbed / "smoke" / "runs"
    process = start(disturbed)
    while len(done := sorted(runs.glob(f"*/{RESULT}"))) < half:
        assert process.poll() is None, log_of(disturbed).read_text()
        time.sleep(0.1)
    # Its workers, of which nobody is in charge any more, end with it.
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done[0].write_text(done[0].read_text()[:-20])
    for path in done[1].parent.rglob("*"):
        if path.is_file() and path.name != "job.json":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    finish(start(disturbed), disturbed)
    every_study_is_done(disturbed)
    assert table(disturbed) == table(undisturbed)
    rows = map(json.loads, (runs / "runs.jsonl").read_text().splitlines())
    redone = {row["identity"] for row in rows if row.get("redone")}
    assert {file.parent.name for file in done[:2]} <= redone
