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
from taynode.lab.sweep.process import COMPILED
from taynode.lab.sweep.results import known_and_missing, WORK
from taynode.lab.sweep.table import Table
from tests.lab.rows import without_times


pytestmark = pytest.mark.slow
SECONDS = 3600
# Twelve runs of some seconds, with and without measurements. What a kill does, and what is done
# after it, does not depend on the study.
QUICK = "fig1-toy", "fig9-taylor", "fig9-orders", "two-moons", "oscillators", "sde"


def start(out, *words):
    """`taynode paper`, as the leader of a group of processes."""
    words = ["paper", *words, "--scale", "smoke", "--seeds", "1", "--out", str(out)]
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


def rows_of(out, names) -> dict[str, Any]:
    """The rows of some studies, each with what they ask for, whatever runs they share with others.

    Times are left out, and so are names that depend on what else was asked, and notes.
    """
    unlike = "identity", "parameters", "redone"
    jobs = [job for name in names for job in find_study(name).jobs("smoke", [0])]
    known, missing = known_and_missing(jobs, out / "smoke" / "runs")
    assert not missing
    return {
        job.identity: without_times({k: v for k, v in result.items() if k not in unlike})
        for job, result in known
    }


def cut_the_last_row(root) -> str:
    """As if the process had been killed while it wrote the row; the job of it."""
    file = max((root / "smoke" / "runs").glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]) + lines[-1][:-20])
    return json.loads(lines[-1])["identity"]


def check_studies(out, names) -> None:
    for name in names:
        record = json.loads((out / "smoke" / f"{name}.json").read_text())
        assert record["claims"], name
        assert record["numbers"], name
        assert (out / "smoke" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_all_studies_and_the_same_if_killed_and_resumed(tmp_path):
    """Also a row, a result and checkpoints that were spoiled meanwhile are redone, not trusted.

    One test, since several might be done at the same time, and each would need all studies.
    """
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    finish(start(undisturbed, "all"), undisturbed)
    check_studies(undisturbed, STUDIES)
    page = (undisturbed / "smoke" / "index.html").read_text()
    assert all(name in page for name in STUDIES)
    rows_of(undisturbed, STUDIES)
    expected = rows_of(undisturbed, QUICK)

    runs = disturbed / "smoke" / "runs"
    work = runs / WORK
    # What was compiled is found by its path, too, so that a copy would not do.
    work.mkdir(parents=True)
    (work / COMPILED).symlink_to(undisturbed / "smoke" / "runs" / WORK / COMPILED)
    process = start(disturbed, "run", *QUICK)
    while len(done := Table(runs).results()) < len(expected) // 2:
        assert process.poll() is None, log_of(disturbed).read_text()
        time.sleep(0.1)
    # Its workers, of which nobody is in charge any more, end with it.
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    # The row is gone, and its job has left a result, which is picked up.
    picked_up = cut_the_last_row(disturbed)
    # These rows are gone as well, and so are the files of their jobs.
    spoiled = [job.identity for job in done if job.identity != picked_up][:2]
    for file in runs.glob("*.jsonl"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(x for x in lines if not any(name in x for name in spoiled)))
    result = work / spoiled[0] / RESULT
    result.write_text(result.read_text()[:-20])
    for path in (work / spoiled[1]).rglob("*"):
        if path.is_file() and path.name != "job.json":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    finish(start(disturbed, "run", *QUICK), disturbed)
    check_studies(disturbed, QUICK)
    assert rows_of(disturbed, QUICK) == expected
    results = Table(runs).results().values()
    redone = {result["identity"] for result in results if result.get("redone")}
    assert set(spoiled) <= redone
    assert picked_up not in redone
