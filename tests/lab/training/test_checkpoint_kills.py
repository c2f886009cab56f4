"""Whenever a process is killed, the last checkpoint that it had finished is there."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taynode.lab.training.checkpoints import Checkpoints

from .saver import is_state_of, state_of


SAVER = Path(__file__).with_name("saver.py")


def saver(mode, directory):
    command = [sys.executable, "-W", "error", str(SAVER), mode, str(directory)]
    # Threads, even idle ones, and forks do not go together.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
    )


def kill_while_saving(process, seconds):
    """The last step that was safe before the kill, or -1."""
    process.stdin.write("\n")
    process.stdin.flush()
    child = int(process.stdout.readline())
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    lines = iter(process.stdout.readline, "killed\n")
    return max([int(line) for line in lines], default=-1)


def check_kills(directory, times, seed):
    delays = random.Random(seed)
    safe, newest = -1, -1
    with saver("forever", directory) as process:
        for _ in range(times):
            safe = max(safe, kill_while_saving(process, delays.uniform(0.0, 0.4)))
            # A warning would be an error here: a kill leaves nothing damaged behind.
            checkpoints = Checkpoints(directory, fingerprint="test")
            restored = checkpoints.restore(state_of(0))
            if restored is None:
                assert safe == -1
                continue
            assert restored.step >= max(safe, newest)
            assert restored.info == {"step": restored.step}
            assert is_state_of(restored.state, restored.step)
            assert len(checkpoints.steps()) >= min(restored.step + 1, checkpoints.keep)
            assert not list(directory.glob(".unfinished*"))
            newest = restored.step
        assert newest > 0
        assert process.communicate() == ("", "")


def test_kill_at_random_moments(tmp_path):
    check_kills(tmp_path / "run", times=12, seed=time.time_ns())


@pytest.mark.slow
def test_kill_at_many_random_moments(tmp_path):
    check_kills(tmp_path / "run", times=200, seed=time.time_ns())


def test_kill_at_each_call_of_the_file_system(tmp_path):
    with saver("each", tmp_path / "run") as process:
        output, errors = process.communicate()
    assert errors == ""
    *lines, last = output.splitlines()
    assert last == "done"
    assert len(lines) > 20
    steps = []
    for line in lines:
        _, step, good, intact = line.split()
        assert int(good) >= 3
        assert intact == "True"
        steps.append(int(step))
    # Never back, and at most the one that was being saved further.
    assert all(after - before in (0, 1) for before, after in itertools.pairwise(steps))
    assert steps[-1] > steps[0]
