"""A Ray cluster of two nodes on loopback, and a sweep on it that is disturbed.

`python -m tests.lab.sweep.ray_nodes ROOT DISTURBANCE` must be started in a network namespace that
has no other interface, since Ray listens on all of them. It ends all processes that it started.
"""

import contextlib
import dataclasses
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from taynode.lab.config import ConfigError, RegularizerConfig, SolveConfig
from taynode.lab.sweep.plan import Job
from taynode.lab.sweep.process import Resources
from taynode.lab.sweep.ray_executor import RayExecutor
from taynode.lab.sweep.results import run_jobs, WORK
from taynode.lab.tasks.names import import_task
from tests.lab.sweep import pretend


ADDRESS = "127.0.0.1:6399"
TASK = "tiny_task:Tiny"
HERE = Path(__file__).parents[1] / "training"
SECONDS = 60
SWEEP, ALONE = "sweep", "alone"
# Environment variables of those whom the cluster does not know.
ALL_STRANGERS = "strangers"
STRANGERS = {
    "wrong token": {"RAY_AUTH_TOKEN": "wrong"},
    "no token": {"RAY_AUTH_TOKEN": ""},
    "no authentication": {"RAY_AUTH_MODE": "disabled"},
}


def jobs():
    """Runs of a few seconds, with a checkpoint after each of their evaluations."""
    euler = SolveConfig(solver="euler", steps=2)
    config = dataclasses.replace(
        import_task(TASK).defaults("smoke"),
        training=euler,
        evaluation=euler,
        regularizer=RegularizerConfig(),
        epochs=1000,
        num_evaluations=200,
    )
    return [Job(dataclasses.replace(config, seed=seed)) for seed in range(6)]


def parents():
    """The parent of each process."""
    out = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            out[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return out


def words_of(process):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")
    return []


def below(process):
    """A process and all that it started."""
    found, tree = [process], parents()
    for each in found:
        found += [child for child, parent in tree.items() if parent == each]
    return found


def end(process):
    """End a node, as if its machine had lost power."""
    for each in below(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def node(*words, private=None):
    """Start a node with one core; `private` is a directory that it does not share."""
    command = [str(Path(sys.executable).with_name("ray")), "start", *words, "--num-cpus=1"]
    command += ["--node-ip-address=127.0.0.1", "--disable-usage-stats", "--block"]
    command += ["--object-store-memory=80000000"]
    if private is not None:
        mount = 'mount -t tmpfs none "$0" && exec "$@"'
        command = ["unshare", "-m", "sh", "-c", mount, str(private), *command]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


@contextlib.contextmanager
def cluster(private=None):
    """Two nodes, the second of which comes out."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HOME": home, "RAY_TMPDIR": home}
        head = node("--head", "--port=6399", "--include-dashboard=false")
        started = [head.pid]
        try:
            time.sleep(4)
            second = node(f"--address={ADDRESS}", private=private)
            started.append(second.pid)
            yield second.pid
        finally:
            for process in reversed(started):
                end(process)


def wait_for(condition):
    stop = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < stop, "nothing happened"
        time.sleep(0.02)
    return found


def num_nodes():
    """The number of nodes that the cluster knows."""
    from ray._raylet import GcsClient

    return len(GcsClient(address=ADDRESS).get_all_node_info())


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def running_on(node):
    """The processes of runs on a node that have saved a checkpoint."""
    found = []
    for process in below(node):
        words = words_of(process)
        if "taynode.lab.sweep.worker" in words:
            directory = Path(words[words.index("taynode.lab.sweep.worker") + 2])
            saved = {path.name for path in directory.glob("checkpoints/step_*.ckpt")}
            if saved - {"step_000000000.ckpt"} and not (directory / "result.json").exists():
                found.append(process)
    return found


def disturb(disturbance, node):
    """Wait until a run on the second node is in the middle, and end its worker or the node."""
    (run, *_) = wait_for(lambda: running_on(node))
    say("disturbed")
    if disturbance == "node":
        end(node)
    else:
        # The parent of the process of a run is a worker of Ray.
        os.kill(parents()[run], signal.SIGKILL)


def main(root, disturbance):
    os.chdir(HERE)
    (root / WORK).mkdir(parents=True)
    private = root / WORK if disturbance == "not shared" else None
    with cluster(private) as second:
        wait_for(lambda: num_nodes() == 2)
        if disturbance in ("worker", "node"):
            threading.Thread(target=disturb, args=(disturbance, second), daemon=True).start()
        if disturbance == ALL_STRANGERS:
            # In processes of their own, since Ray keeps the token that it has read.
            words = [sys.executable, "-m", "tests.lab.sweep.ray_nodes", str(root), SWEEP]
            for stranger, variables in STRANGERS.items():
                say(stranger)
                subprocess.run(words, env={**os.environ, **variables}, check=True)
        else:
            sweep(root)


def sweep_alone(root):
    """On a cluster that the executor starts by itself, with made-up runs."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HOME": home, "RAY_TMPDIR": home}
        try:
            list(RayExecutor(resources=Resources(cpus=4096)).execute([pretend.job()], root))
        except ConfigError as error:
            say(error)
        executor = RayExecutor(worker=pretend.WORKER)
        for _, result, error in run_jobs(map(pretend.job, range(2)), root, executor):
            say(result is not None, error)
        say("token", len((Path(home) / ".ray" / "auth_token").read_text()))


def sweep(root):
    os.chdir(HERE)
    try:
        executor = RayExecutor(tasks=[TASK], address=ADDRESS)
        for job, result, error in run_jobs(jobs(), root, executor, on_progress=say):
            say(job.identity, result is not None, error)
    except ConfigError as error:
        say(f"ConfigError: {error}")


if __name__ == "__main__":
    where, what = Path(sys.argv[1]), sys.argv[2]
    if what in (SWEEP, ALONE):
        (sweep if what == SWEEP else sweep_alone)(where)
    else:
        main(where, what)
