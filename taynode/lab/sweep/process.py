"""One job in a process of the machine on which this is called. This module does not import JAX."""

import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from ..config import positive
from ..files import replace_text, write_json
from .directory import ERROR, JOB
from .plan import Job
from .worker import ATTACHED, TASK


WORKER = "taynode.lab.sweep.worker"
COMPILED = ".compiled"
# Runs at the scale smoke spend nearly all of their time in the compiler.
QUICK_TO_COMPILE = "--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"
# The environment variables that change what a run does.
HANDED_ON = "TAYNODE_", "JAX_", "XLA_"


@dataclasses.dataclass(frozen=True)
class Resources:
    """What a run needs.

    - `cpus`: the number of cores.
    - `memory`: the memory in GB, if it has to be reserved.
    - `minutes`: the time after which SLURM ends a run, if it is not the default.
    """

    cpus: int = 1
    memory: float | None = None
    minutes: float | None = None

    def __post_init__(self):
        positive("cpus_per_run", self.cpus)
        for name, value in {"memory": self.memory, "time": self.minutes}.items():
            if value is not None:
                positive(f"{name}_per_run", value)


ONE_CORE = Resources()


@dataclasses.dataclass(frozen=True)
class Launch:
    """How jobs are started, on this machine or on another one.

    - `worker`: the module that executes a job.
    - `tasks`: tasks that are not built in, which the worker imports.
    - `cpus`: the number of cores of a run.
    - `directory`: the working directory, where tasks that are not built in are found.
    - `variables`: environment variables.
    """

    worker: str = WORKER
    tasks: tuple[str, ...] = ()
    cpus: int = 1
    directory: str = "."
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How the process of a job ended.

    - `error`: why there is no result; empty if there is one.
    - `is_lost`: whether the process or its machine was ended from outside, so that the run can
        continue in another process.
    """

    error: str = ""
    is_lost: bool = False


def launch_from_here(worker: str, tasks: tuple[str, ...], cpus: int) -> Launch:
    """Start jobs in the working directory and with the environment variables of this process."""
    variables = {k: v for k, v in os.environ.items() if k.startswith(HANDED_ON)}
    return Launch(worker, tasks, cpus, os.getcwd(), variables)


def run_process(
    job: Job,
    root: Path,
    launch: Launch,
    on_start: Callable[[subprocess.Popen], None] | None = None,
) -> Outcome:
    """Execute a job in its directory below a root, in a process that ends when this one ends."""
    directory = job.directory(root)
    directory.mkdir(parents=True, exist_ok=True)
    file, errors = directory / JOB, directory / ERROR
    write_json(file, job.as_dict())
    command = [sys.executable, "-m", launch.worker, str(file), str(directory), ATTACHED]
    # The user has named these tasks, not the job, which may come from a file.
    command += [word for task in launch.tasks for word in (TASK, task)]
    with (
        # Not in the directory, where another process may be at work on the same job.
        tempfile.TemporaryFile("w+", errors="replace") as stream,
        subprocess.Popen(
            command,
            # Nothing is written to it. It is closed when this process ends for any reason.
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            cwd=launch.directory,
            env={**os.environ, **launch.variables, **environment(job, root, launch)},
        ) as process,
    ):
        if on_start is not None:
            on_start(process)
        code = process.wait()
        stream.seek(0)
        said = stream.read()
    if code == 0:
        errors.unlink(missing_ok=True)
        return Outcome()
    replace_text(errors, said)
    if code < 0:
        # By the system, for example, when memory is short.
        return Outcome(f"The process was ended by signal {-code}.", is_lost=True)
    lines = said.strip().splitlines()
    return Outcome(lines[-1] if lines else f"exit code {code}")


def environment(job: Job, root: Path, launch: Launch) -> dict[str, str]:
    """Environment variables for a run on some cores, and a shared cache of compiled programs."""
    flags = [launch.variables.get("XLA_FLAGS", "")]
    threads = {}
    if launch.cpus == 1:
        flags.append("--xla_cpu_multi_thread_eigen=false")
        threads = {"OMP_NUM_THREADS": "1"}
    if job.config.scale == "smoke":
        flags += QUICK_TO_COMPILE
    return {
        **threads,
        "XLA_FLAGS": " ".join(flags).strip(),
        "JAX_COMPILATION_CACHE_DIR": str((root / COMPILED).resolve()),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        # Programs with callbacks, which raise errors, cannot be cached. The loop checks for NaNs.
        "EQX_ON_ERROR": "nan",
    }
