"""A killed process never costs a checkpoint that it had finished."""

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


ROOT = Path(__file__).parents[3]


def saver(mode, directory):
    command = [sys.executable, "-W", "error", "-m", "tests.lab.training.saver"]
    # Threads, even idle ones, and forks do not go together.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*command, mode, str(directory)],
        cwd=ROOT,
        env=environment,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
    )


def kill_while_saving(process, seconds):
    """The last step that was saved before the kill, or -1."""
    process.stdin.write("\n")
    process.stdin.flush()
    child = int(process.stdout.readline())
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    lines = iter(process.stdout.readline, "killed\n")
    return max([int(line) for line in lines], default=-1)


def check_kills(directory, times, seed):
    delays = random.Random(seed)
    saved, newest = -1, -1
    checkpoints = Checkpoints(directory, fingerprint="test")
    with saver("forever", directory) as process:
        for _ in range(times):
            saved = max(saved, kill_while_saving(process, delays.uniform(0.0, 0.2)))
            # A warning would be an error here: a kill leaves nothing damaged behind.
            restored = checkpoints.restore(state_of(0))
            if restored is None:
                assert saved == -1
                continue
            assert restored.step >= max(saved, newest)
            assert restored.info == {"step": restored.step}
            assert is_state_of(restored.state, restored.step)
            assert len(checkpoints.steps()) >= min(restored.step + 1, checkpoints.keep)
            # The lock, and what was being written.
            assert len(list(directory.glob(".*"))) <= 2
            newest = restored.step
        assert newest > 0
        assert process.communicate() == ("", "")
    checkpoints.save(newest + 1, state_of(newest + 1))
    assert len(list(directory.iterdir())) == 1 + checkpoints.keep


def test_kill_at_random_moments(tmp_path):
    check_kills(tmp_path / "run", times=12, seed=time.time_ns())


@pytest.mark.slow
def test_kill_at_many_random_moments(tmp_path):
    check_kills(tmp_path / "run", times=200, seed=time.time_ns())


@pytest.mark.parametrize("mode", ["calls", "bytes"])
def test_kill_at_each_call_of_the_file_system_and_at_many_bytes(tmp_path, mode):
    with saver(mode, tmp_path / "run") as process:
        output, errors = process.communicate()
    assert errors == ""
    *lines, last = output.splitlines()
    assert last == "done"
    assert len(lines) > 10
    steps = []
    for line in lines:
        step, good, intact = line.split()
        assert int(good) >= 3
        assert intact == "True"
        steps.append(int(step))
    # No step is lost; the one that was being saved when its process died may be there or not.
    assert all(after - before in (0, 1) for before, after in itertools.pairwise(steps))
    assert (steps[-1] > steps[0]) == (mode == "calls")
