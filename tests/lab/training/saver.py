"""Saves checkpoints until it is killed: a process of its own for `test_checkpoint_kills.py`.

saver.py forever DIRECTORY    prints each step when it is safe, until somebody kills it
saver.py each DIRECTORY       kills itself at each call of the file system in turn
"""

import os
import signal
import sys
import threading
import types
from pathlib import Path


if __name__ == "__main__":
    # Bare packages: importing all of them would take longer than the test.
    for name in ("taynode", "taynode.lab.training"):
        package = types.ModuleType(name)
        package.__path__ = [str(Path(__file__).parents[2].joinpath(*name.split(".")))]
        sys.modules[name] = package

import numpy as np
import orbax.checkpoint  # noqa: F401  now, so that the first save is as short as the others

from taynode.lab.training.checkpoints import Checkpoints


CALLS = ["open", "fsync", "mkdir", "rename", "replace", "unlink", "rmdir"]


def state_of(step):
    return {"w": np.full((300, 100), step, np.float32), "m": [np.full(7, step)], "step": step}


def is_state_of(state, step):
    expected = state_of(step)
    return (
        np.array_equal(state["w"], expected["w"])
        and np.array_equal(state["m"][0], expected["m"][0])
        and state["step"] == step
    )


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def forever(directory):
    for _ in sys.stdin:
        if (process := os.fork()) == 0:
            save_forever(directory)
        if os.waitpid(process, 0)[1] != signal.SIGKILL:
            sys.exit("A save failed other than by being killed.")
        say("killed")


def save_forever(directory):
    """Tell each step that is safe on disk."""
    signal.alarm(60)  # in case that there is nobody left to kill it
    checkpoints = Checkpoints(directory, fingerprint="test")
    restored = checkpoints.restore(state_of(0))
    step = 0 if restored is None else restored.step + 1
    say(os.getpid())
    while True:
        checkpoints.save(step, state_of(step), info={"step": step})
        say(step)
        step += 1


def die_at(number):
    """Die at a call of the file system, and before it takes place."""
    lock, count = threading.Lock(), 0

    def dying(function):
        def call(*args, **kwargs):
            nonlocal count
            with lock:
                if count == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1
            return function(*args, **kwargs)

        return call

    for name in CALLS:
        setattr(os, name, dying(getattr(os, name)))


def each(directory):
    """One process for each call: it tells what it finds, saves, and dies on the way."""
    for step in range(3):
        if os.fork() == 0:
            Checkpoints(directory, fingerprint="test").save(step, state_of(step))
            os._exit(0)
        assert os.wait()[1] == 0
    number, status = 0, None
    while status != 0:
        if (process := os.fork()) == 0:
            checkpoints = Checkpoints(directory, fingerprint="test")
            restored = checkpoints.restore(state_of(0))
            step = restored.step
            say(number, step, len(checkpoints.steps()), is_state_of(restored.state, step))
            die_at(number)
            checkpoints.save(step + 1, state_of(step + 1))
            os._exit(0)
        status = os.waitpid(process, 0)[1]
        if status not in (0, signal.SIGKILL):
            sys.exit("A save failed other than by being killed.")
        number += 1
    say("done")


if __name__ == "__main__":
    {"forever": forever, "each": each}[sys.argv[1]](sys.argv[2])
