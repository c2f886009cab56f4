"""Saves checkpoints until it is killed: a process of its own for `test_checkpoint_kills.py`.

saver forever DIRECTORY    for each line of input, prints each step once it is saved, until killed
saver calls DIRECTORY      is killed at each call of the file system in turn
saver bytes DIRECTORY      is killed while it writes, after more and more bytes
"""

import os
import resource
import signal
import sys

import numpy as np

from taynode.lab.training.checkpoints import Checkpoints


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


def in_child(function, *args):
    """Call a function in a process of its own, and return the signal that killed it, if any."""
    if (process := os.fork()) == 0:
        function(*args)
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    if status and not os.WIFSIGNALED(status):
        sys.exit("A save failed other than by being killed.")
    return os.WTERMSIG(status)


def forever(directory):
    for _ in sys.stdin:
        in_child(save_forever, directory)
        say("killed")


def save_forever(directory):
    signal.alarm(60)  # in case that nobody is left to kill it
    checkpoints = Checkpoints(directory, fingerprint="test")
    restored = checkpoints.restore(state_of(0))
    step = 0 if restored is None else restored.step + 1
    say(os.getpid())
    while True:
        checkpoints.save(step, state_of(step), info={"step": step})
        say(step)
        step += 1


def die_at_call(number):
    """Die before the given call of the file system. Python audits all of them, except `fsync`."""
    count, fsync = 0, os.fsync

    def on_event(event, args):
        nonlocal count
        if event == "open" or event.startswith("os."):
            if count == number:
                signal.raise_signal(signal.SIGKILL)  # not `os.kill`, which is audited, too
            count += 1

    def audited_fsync(descriptor):
        on_event("os.fsync", ())
        fsync(descriptor)

    os.fsync = audited_fsync
    sys.addaudithook(on_event)


def die_at_byte(number):
    """Die when a file is about to exceed the given size."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def save_one(directory, die, number):
    """Print what an earlier process has left, then save and die."""
    checkpoints = Checkpoints(directory, fingerprint="test")
    restored = checkpoints.restore(state_of(0))
    step = restored.step
    say(step, len(checkpoints.steps()), is_state_of(restored.state, step))
    die(number)
    checkpoints.save(step + 1, state_of(step + 1))


def kill_at_each(directory, die, stride):
    """Kill one process after another, each one later than the one before, until one survives."""
    for step in range(3):
        Checkpoints(directory, fingerprint="test").save(step, state_of(step))
    number = 0
    while in_child(save_one, directory, die, number):
        number += stride
    say("done")


if __name__ == "__main__":
    mode, directory = sys.argv[1:]
    if mode == "forever":
        forever(directory)
    else:
        kill_at_each(directory, *{"calls": (die_at_call, 1), "bytes": (die_at_byte, 9999)}[mode])
