"""A training that is killed at any moment and resumed ends where it would have ended anyway."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from taynode import lab

from ..rows import without_penalties
from .test_loop import arrays_of, without_times
from .tiny_task import Tiny


HERE = Path(__file__).parent
SECONDS = 120


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts `taynode train` as a process of its own."""
    monkeypatch.chdir(HERE)
    # They share what they have compiled: otherwise that would take nearly all of the time, and
    # nearly all kills. Programs that may raise are not stored, so errors are NaN here.
    shared = {
        "EQX_ON_ERROR": "nan",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }

    def start(out, scale, *flags):
        command = [sys.executable, "-m", "taynode.lab.cli", "train", "tiny_task:Tiny"]
        command += ["--scale", scale, "--out", str(out), *flags]
        pipe = subprocess.PIPE
        environment = {**os.environ, **shared}
        return subprocess.Popen(
            command, cwd=HERE, env=environment, stdout=pipe, stderr=pipe, text=True
        )

    return start


def wait_until(condition, process):
    end = time.monotonic() + SECONDS
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def is_running(out):
    """Whether a process has begun: it says so after it has restored."""
    return lab.RunDirectory(out).status().get("state") == "running"


def has_saved(out):
    """Whether there is a checkpoint of more than the beginning."""
    steps = {path.name for path in out.glob("checkpoints/step_*.ckpt")}
    return bool(steps - {"step_000000000.ckpt"})


def num_rows(out):
    return len(lab.RunDirectory(out).rows())


def finish(process):
    with process:
        assert process.wait(600) == 0, process.communicate()


def check_kills(start, tmp_path, scale, times):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    finish(start(undisturbed, scale))
    chance = random.Random(time.time_ns())
    steps = []
    for i in range(times):
        (killed / "status.json").unlink(missing_ok=True)
        with start(killed, scale, "--resume") as process:
            # Only the first one has to wait for something to resume, the others have it.
            wait_until(lambda: is_running(killed) and has_saved(killed), process)
            # Some while they compile, some between two evaluations, whatever they are doing there.
            if i % 3 < 2:
                rows = num_rows(killed)
                wait_until(lambda rows=rows: num_rows(killed) > rows, process)
            time.sleep(chance.uniform(0.0, 0.3))
            process.send_signal(signal.SIGKILL)
            assert process.wait(SECONDS) == -signal.SIGKILL, process.communicate()
        steps.append(lab.load(killed, task=Tiny).step)
    finish(start(killed, scale, "--resume"))
    assert steps == sorted(steps)
    assert steps[-1] > 0
    for one, other in zip(arrays_of(killed), arrays_of(undisturbed), strict=True):
        assert one.tobytes() == other.tobytes()
    rows = [without_times(lab.RunDirectory(out).rows()) for out in (killed, undisturbed)]
    assert rows[0] == rows[1]


@pytest.mark.slow
def test_a_kill(start, tmp_path):
    """Resumed in this process, whose programs are not the same to the last bit."""
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    # What takes less time to compile.
    flags = ["--set.evaluation.solver", "euler", "--set.evaluation.steps", "2"]
    with start(killed, "laptop", *flags, "--regularizer", "none") as process:
        wait_until(lambda: is_running(killed) and has_saved(killed), process)
        process.send_signal(signal.SIGKILL)
        assert process.wait(SECONDS) == -signal.SIGKILL, process.communicate()
    settings = lab.RunDirectory(killed).config()
    with jax.enable_x64(False), without_penalties():
        assert 0 < lab.load(killed, task=Tiny).step < 400
        lab.train(settings, Tiny(), killed, resume=True)
        lab.train(settings, Tiny(), undisturbed)
        for one, other in zip(arrays_of(killed), arrays_of(undisturbed), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    rows = [lab.RunDirectory(out).rows() for out in (killed, undisturbed)]
    assert [row["step"] for row in rows[0]] == [row["step"] for row in rows[1]]
    losses = ([row["test_loss"] for row in of] for of in rows)
    np.testing.assert_allclose(*losses, rtol=1e-3)


@pytest.mark.slow
def test_twelve_kills(start, tmp_path):
    """At random; `test_checkpoint_kills.py` has a kill at each call of the file system."""
    check_kills(start, tmp_path, "paper", 12)


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(start, tmp_path):
    out = tmp_path / "run"
    with start(out, "paper") as process:
        wait_until(lambda: is_running(out) and any(out.glob("checkpoints/*")), process)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert output == ""
    assert "go on with `--resume`" in errors
    assert "Traceback" not in errors
