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
from taynode.lab.sweep.directory import RESULT
from taynode.lab.sweep.results import WORK
from taynode.lab.sweep.table import Table
from tests.lab.rows import comparable


pytestmark = pytest.mark.slow
SECONDS = 3600


def start(out):
    """`taynode paper all`, as the leader of a group of processes."""
    words = ["paper", "all", "--scale", "smoke", "--seeds", "1", "--out", str(out)]
    with open(log_of(out), "a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "taynode.lab.cli", *words],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def log_of(out):
    return out.with_suffix(".log")


def finish(process, out):
    assert process.wait(timeout=SECONDS) == 0, log_of(out).read_text()


def table(root) -> dict[str, Any]:
    return comparable(Table(root / "smoke" / "runs").results().values())


def cut_the_last_row(root) -> str:
    """As if the process had been killed while it wrote the row; the job of it."""
    file = max((root / "smoke" / "runs").glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]) + lines[-1][:-20])
    return json.loads(lines[-1])["identity"]


def every_study_is_done(out) -> None:
    for name in STUDIES:
        record = json.loads((out / "smoke" / f"{name}.json").read_text())
        assert record["claims"], name
        assert record["numbers"], name
        assert (out / "smoke" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert name in (out / "smoke" / "index.html").read_text()
    expected = {job.identity for name in STUDIES for job in find_study(name).jobs("smoke", [0])}
    assert table(out).keys() == expected


def test_all_studies_and_the_same_if_killed_and_resumed(tmp_path):
    """Also a row, a result and checkpoints that were spoiled meanwhile are redone, not trusted.

    One test, since several might be done at the same time, and each would need all studies.
    """
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    finish(start(undisturbed), undisturbed)
    every_study_is_done(undisturbed)
    half = len(table(undisturbed)) // 2
    work = disturbed / "smoke" / "runs" / WORK
    process = start(disturbed)
    while len(done := table(disturbed)) < half:
        assert process.poll() is None, log_of(disturbed).read_text()
        time.sleep(0.1)
    # Its workers, of which nobody is in charge any more, end with it.
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    # The row is gone, and its job has left a result, which is picked up.
    picked_up = cut_the_last_row(disturbed)
    # These rows are gone as well, and so are the files of their jobs.
    spoiled = [identity for identity in done if identity != picked_up][:2]
    for file in (disturbed / "smoke" / "runs").glob("*.jsonl"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(x for x in lines if not any(name in x for name in spoiled)))
    result = work / spoiled[0] / RESULT
    result.write_text(result.read_text()[:-20])
    for path in (work / spoiled[1]).rglob("*"):
        if path.is_file() and path.name != "job.json":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    finish(start(disturbed), disturbed)
    every_study_is_done(disturbed)
    assert table(disturbed) == table(undisturbed)
    results = Table(disturbed / "smoke" / "runs").results().values()
    redone = {result["identity"] for result in results if result.get("redone")}
    assert set(spoiled) <= redone
    assert picked_up not in redone
