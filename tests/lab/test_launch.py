"""Several processes that train one model: what ends them, and how they start again."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from taynode import lab
from taynode.lab import CheckpointError, launch
from taynode.lab.cli import main
from taynode.lab.config import ConfigError, SolveConfig
from taynode.lab.files import write_json
from taynode.lab.launch import Launcher, LaunchError, LOST, STOPPED
from taynode.lab.tasks.base import Evaluated
from taynode.lab.training import processes
from taynode.lab.training.evaluate import EVAL_BATCH
from taynode.lab.training.records import ENVIRONMENT

from .training.test_kills import num_rows, wait_until
from .training.test_loop import arrays_of, without_times
from .training.tiny_task import points, Tiny


HERE = Path(__file__).parent / "training"

# A process that says that it has made a step, and then does what a test wants.
PROGRAM = """
import os, pathlib, signal, sys, time
number, resumes = int(os.environ["TAYNODE_LAUNCH_PROCESS"]), "--resume" in sys.argv
def tell(step):
    pathlib.Path(os.environ["TAYNODE_LAUNCH_PROGRESS"]).write_text(f"step {step}")
"""


def launched(monkeypatch, program, on_start=lambda: None, **options):
    """Launch two processes with a program of their own, and return the code and what is said."""

    def start(words, told):
        on_start()
        command = [sys.executable, "-c", PROGRAM + program, *words]
        return subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, **told})

    monkeypatch.setattr(launch, "_start", start)
    said = []
    return Launcher(["train", "digits"], 2, say=said.append, **options).run(), said


def test_processes_that_end_well(monkeypatch):
    assert launched(monkeypatch, "assert not resumes") == (0, [])


def test_all_start_again_after_a_kill(monkeypatch):
    program = "tell(7)\nif not resumes: os.kill(os.getpid(), 9) if number else time.sleep(60)"
    code, said = launched(monkeypatch, program)
    assert code == 0
    assert len(said) == 1
    assert "Process 1 was ended by signal 9 at about step 7" in said[0]


def test_one_that_is_stuck_is_ended(monkeypatch):
    program = "tell(7 + number)\nif not resumes: time.sleep(60)"
    start = time.monotonic()
    code, said = launched(monkeypatch, program, timeout=0.5)
    assert time.monotonic() - start < 30
    assert code == 0
    assert "No progress for 0 s (processes: 0 at step 7, 1 at step 8)" in said[0]


def test_an_error_is_not_tried_again(monkeypatch):
    """Also if another process ends first, since it has lost its peer."""
    program = f"if number: sys.exit({LOST})\ntime.sleep(0.5)\nsys.exit(3)"
    assert launched(monkeypatch, program) == (3, [])


def test_failures_without_progress_end(monkeypatch):
    with pytest.raises(LaunchError, match="This happened 4 times without a step of progress"):
        launched(monkeypatch, f"sys.exit({LOST})")


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_before_all_have_started(monkeypatch):
    """BUG, fixed: "Process 0 was ended by signal 2. All processes start again"."""
    at = time.monotonic()
    assert launched(monkeypatch, "time.sleep(60)", on_start=interrupt) == (STOPPED, [])
    assert time.monotonic() - at < 30


IGNORES = "signal.signal(signal.SIGINT, signal.SIG_IGN)\ntell(1)\n"


@pytest.mark.parametrize(("times", "timeout"), [(1, 0.5), (2, 300.0)])
def test_ctrl_c_while_processes_hang(monkeypatch, tmp_path, times, timeout):
    """BUG, fixed: the watchdog found that they hang, and they started again."""
    ready = tmp_path / "ready"
    program = f"{IGNORES}if number: pathlib.Path({str(ready)!r}).touch()\ntime.sleep(60)"

    def interrupts():
        while not ready.exists():
            time.sleep(0.01)
        for _ in range(times):
            interrupt()
            time.sleep(0.3)

    threading.Thread(target=interrupts, daemon=True).start()
    at = time.monotonic()
    assert launched(monkeypatch, program, timeout=timeout) == (STOPPED, [])
    assert time.monotonic() - at < 30


def test_a_run_that_was_there_is_not_continued_after_a_failure(monkeypatch, tmp_path):
    """BUG, fixed: the command was repeated with `--resume`, also if it would have been refused."""
    file = tmp_path / "failed"
    fails = f"file = pathlib.Path({str(file)!r})\nif not file.exists():\n file.touch()\n"
    program = f"{fails} os.kill(os.getpid(), 9)\nsys.exit(5 if resumes else 4)"
    code, said = launched(monkeypatch, program)
    assert code == 4
    assert "All processes start again, from the beginning." in said[0]


def test_training_tells_that_it_has_begun_when_it_is_not_refused(monkeypatch, tmp_path):
    progress = tmp_path / "progress"
    progress.touch()
    monkeypatch.setenv(launch.PROGRESS, str(progress))
    run = lab.RunDirectory(tmp_path / "run")
    config = Tiny().defaults("smoke")
    run.create(config)
    with pytest.raises(ConfigError, match="There is a run in"):
        lab.train(config, Tiny(), run.path)
    assert progress.read_text() == ""
    write_json(run.path / ENVIRONMENT, {"data_digest": "another"})
    with pytest.raises(CheckpointError, match="was begun on other data"):
        lab.train(config, Tiny(), run.path, resume=True)
    assert progress.read_text() == "beginning -1"


def test_each_batch_of_an_evaluation_tells_that_it_is_alive(monkeypatch, tmp_path):
    """BUG, fixed: only the first evaluation did, and later ones that took long were ended."""
    progress = tmp_path / "progress"
    progress.write_text("step 3")
    monkeypatch.setenv(launch.PROGRESS, str(progress))
    euler = SolveConfig(solver="euler", steps=2)
    evaluator = lab.Evaluator(Tiny(), euler)
    times = []

    def plain(model, batch, key):
        times.append(progress.stat().st_mtime)
        os.utime(progress, (0, 0))
        each = np.zeros(len(batch.inputs))
        return Evaluated(each, {}, each, each, each, each), {}

    monkeypatch.setattr(evaluator, "plain", plain)
    model = eqx.nn.Identity()
    evaluator.samples(model, points(3 * EVAL_BATCH, 0), split="test", more=False)
    evaluator.forward_seconds(model, points(EVAL_BATCH, 0), split="test", repeats=2)
    assert len(times) == 3 + 1 + 2
    assert all(times)
    # The phase stays that of steps, in which a batch that hangs is found soon.
    assert progress.read_text() == "step 3"


def of_two(monkeypatch, *other):
    """As if there were another process, number 1, with these numbers."""
    monkeypatch.setattr(processes, "of_all", lambda *own: np.array([own, other]))


def test_processes_that_differ_are_named(monkeypatch):
    """BUG, fixed: they trained together, each on its own data."""
    of_two(monkeypatch, 0xABCDEF, 0x123456)
    processes.agree_on("data", "abcdef123456")
    with pytest.raises(ConfigError, match="The data of process 1 differ from those of process 0"):
        processes.agree_on("data", "abcdef123457")


@pytest.mark.parametrize(("code", "kind"), [(1, processes.PeerError), (2, ConfigError)])
def test_an_error_of_one_process_is_one_of_all(monkeypatch, code, kind):
    of_two(monkeypatch, code)
    with pytest.raises(kind, match="Process 1 has failed, and says why"), processes.together():
        pass
    with pytest.raises(ZeroDivisionError), processes.together():
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("coordinator_address should be defined."), "JAX finds no cluster .* Pass `-n`"),
        (jax.errors.JaxRuntimeError("DEADLINE_EXCEEDED"), f"{LOST}: it cannot join .* DEADLINE"),
    ],
)
def test_errors_of_joining_are_no_tracebacks(monkeypatch, error, message):
    """BUG, fixed: they were, and no launcher tried again."""

    def fail(**options):
        raise error

    def end(code, number, message):
        raise ConfigError(f"{code}: {message}")

    monkeypatch.setenv(launch.LAUNCHED, "1")
    monkeypatch.delenv(launch.ADDRESS, raising=False)
    monkeypatch.setattr(processes, "end_with_input", lambda: None)
    monkeypatch.setattr(processes, "_end", end)
    monkeypatch.setattr(jax.distributed, "initialize", fail)
    with pytest.raises(ConfigError, match=message):
        processes.join()


@pytest.mark.parametrize("words", [[], ["paper", "run"]])
def test_only_training_is_launched(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["launch", "-n", "2", "--", *words])
    assert stop.value.code == 2
    assert "`launch` needs a command to train after `--`" in capsys.readouterr().err


def test_wrong_numbers():
    for options in ({"number": 0}, {"timeout": 0.0}):
        with pytest.raises(ConfigError, match="must be positive"):
            Launcher(["train", "digits"], **options)


@pytest.fixture
def start(tmp_path):
    """Launches a training in two processes."""
    shared = {
        "EQX_ON_ERROR": "nan",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "PYTHONPATH": str(HERE.parents[2]),
    }

    def start(out, *flags, scale="laptop", variables=None, task="Tiny"):
        alone = ["-n", "2"] if variables is None else []
        command = [sys.executable, "-m", "taynode.lab.cli", "launch", *alone, *flags, "--"]
        command += ["train", f"tiny_task:{task}", "--scale", scale, "--out", str(out)]
        # The penalty draws random numbers for each device. Evaluations take no time to compile.
        for name, value in {"solver": "euler", "steps": 2}.items():
            command += [f"--set.evaluation.{name}", str(value)]
        return subprocess.Popen(
            command,
            cwd=HERE,
            env={**os.environ, **shared, **(variables or {})},
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def children(process):
    """The processes that a process has started."""
    file = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(number) for number in file.read_text().split()]


def finish(process):
    _, errors = process.communicate(timeout=1200)
    assert process.returncode == 0, errors
    return errors


def check_same(one, other):
    for a, b in zip(arrays_of(one), arrays_of(other), strict=True):
        assert a.tobytes() == b.tobytes()
    rows = [without_times(lab.RunDirectory(out).rows()) for out in (one, other)]
    assert rows[0] == rows[1]
    steps = [row["step"] for row in rows[0]]
    assert steps == sorted(set(steps))
    assert rows[0][-1]["devices"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("OfProcess", "The data of process 1 differ from those of process 0"),
        ("Tiny", "Process 0 has failed, and says why"),
    ],
)
def test_all_processes_end_with_the_same_error(start, tmp_path, task, message):
    if task == "Tiny":
        lab.RunDirectory(tmp_path).create(Tiny().defaults("smoke"))
    process = start(tmp_path, scale="smoke", task=task)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 2, errors
    assert message in errors
    assert ("There is a run in" in errors) == (task == "Tiny")
    assert "start again" not in errors
    assert "Traceback" not in errors


def test_no_cluster_is_an_error_of_the_command(start, tmp_path):
    process = start(tmp_path / "run", variables={})
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 2, errors
    assert "JAX finds no cluster" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_one_of_two_processes_killed_five_times(start, tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    finish(start(undisturbed))
    chance = random.Random(time.time_ns())
    process = start(killed)
    for i in range(5):
        rows = num_rows(killed)
        wait_until(lambda rows=rows: num_rows(killed) > rows, process)
        time.sleep(chance.uniform(0.0, 0.3))
        before = children(process)
        os.kill(before[i % 2], signal.SIGKILL)
        wait_until(lambda before=before: set(children(process)).isdisjoint(before), process)
        wait_until(lambda: len(children(process)) == 2, process)
    errors = finish(process)
    assert errors.count("start again, from the newest checkpoint") == 5
    check_same(killed, undisturbed)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_process_that_is_stuck_and_ctrl_c(start, tmp_path):
    """BUG, fixed: the first evaluation after a start compiles, and counted as stuck."""
    stuck = tmp_path / "stuck"
    process = start(stuck, "--timeout", "10", scale="paper")
    wait_until(lambda: num_rows(stuck) > 2, process)
    before = children(process)
    os.kill(before[1], signal.SIGSTOP)
    at = time.monotonic()
    wait_until(lambda: set(children(process)).isdisjoint(before), process)
    assert time.monotonic() - at < 60
    rows = num_rows(stuck)
    wait_until(lambda: num_rows(stuck) > rows, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert "No progress for 10 s" in errors
    assert errors.count("go on with `--resume`") == 1
    assert json.loads((stuck / "status.json").read_text())["state"] == "stopped"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_launchers_of_two_slurm_tasks_bring_a_run_back(start, tmp_path):
    """JAX finds the processes by the variables that SLURM sets."""
    out, port = tmp_path / "run", str(launch._free_port())
    common = {"SLURM_JOB_ID": "1", "SLURM_STEP_NODELIST": "127.0.0.1", "SLURM_NTASKS": "2"}
    common |= {"JAX_COORDINATOR_PORT": port, "JAX_COORDINATOR_BIND_ADDRESS": f"127.0.0.1:{port}"}
    tasks = [
        start(out, variables=common | {"SLURM_PROCID": number, "SLURM_LOCALID": number})
        for number in ("0", "1")
    ]
    wait_until(lambda: num_rows(out) > 2, tasks[0])
    os.kill(children(tasks[1])[0], signal.SIGKILL)
    first, second = (finish(task) for task in tasks)
    assert "The process of this host has lost its peers" in first
    assert "The process of this host was ended by signal 9" in second
    assert len(lab.RunDirectory(out).rows()) == 21
