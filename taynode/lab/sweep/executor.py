"""Executors of jobs. Another executor may use other machines."""

import abc
import dataclasses
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..config import positive
from ..files import write_json
from .plan import Job
from .worker import ATTACHED, TASK


WORKER = "taynode.lab.sweep.worker"
COMPILED = ".compiled"
# Runs at the scale smoke spend nearly all of their time in the compiler.
QUICK_TO_COMPILE = "--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"


@dataclasses.dataclass(frozen=True)
class Done:
    """A job that has ended. If it has no result, `error` says why."""

    job: Job
    error: str = ""


class AbstractExecutor(abc.ABC):
    """Executes jobs, in any order."""

    @abc.abstractmethod
    def execute(self, jobs: Sequence[Job], root: Path) -> Iterator[Done]:
        """Execute jobs, each in its own directory below a root, and yield each when it ends."""


class LocalExecutor(AbstractExecutor):
    """Executes jobs in processes of this machine, one per core.

    **Arguments:**

    - `num_processes`: the number of processes; the number of cores by default.
    - `worker`: the module that executes a job, such as `taynode.lab.sweep.worker`. Another module
        may add measurements.
    - `tasks`: tasks that are not built in but that jobs may have, as `module:Class`. The workers
        import these modules, so you have to trust them.
    """

    def __init__(
        self,
        num_processes: int | None = None,
        *,
        worker: str = WORKER,
        tasks: Sequence[str] = (),
    ):
        self.worker, self.tasks = worker, tuple(tasks)
        self.cores = _cores()
        if num_processes is not None:
            positive("jobs", num_processes)
        self.num_processes = num_processes or len(self.cores)

    def execute(self, jobs: Sequence[Job], root: Path) -> Iterator[Done]:
        """Execute jobs, each in its own directory below a root, and yield each when it ends."""
        waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        ended: queue.SimpleQueue[Done] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        running: set[subprocess.Popen] = set()
        # With fewer processes than cores, the system should choose idle cores.
        pins = self.num_processes >= len(self.cores)

        def work(core: int | None) -> None:
            while True:
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    return
                # An error of one job must not stop the others.
                try:
                    done = self._run(job, root, core, running)
                except Exception as error:
                    done = Done(job, f"{type(error).__name__}: {error}")
                ended.put(done)

        for i in range(min(self.num_processes, len(jobs))):
            core = self.cores[i % len(self.cores)] if pins else None
            threading.Thread(target=work, args=(core,), daemon=True).start()
        try:
            for _ in jobs:
                yield ended.get()
        finally:
            # After Ctrl-C, for example. The runs have checkpoints to continue from.
            while not waiting.empty():
                waiting.get()
            for process in list(running):
                process.kill()

    def _run(self, job: Job, root: Path, core: int | None, running: set[subprocess.Popen]) -> Done:
        directory = job.directory(root)
        directory.mkdir(parents=True, exist_ok=True)
        file, errors = directory / "job.json", directory / "error.txt"
        write_json(file, job.as_dict())
        command = [sys.executable, "-m", self.worker, str(file), str(directory), ATTACHED]
        # The user has named these tasks, not the job, which may come from a file.
        command += [word for task in self.tasks for word in (TASK, task)]
        with (
            open(errors, "w") as stream,
            subprocess.Popen(
                command,
                # Nothing is written to it. It is closed when this process ends for any reason.
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stream,
                env={**os.environ, **_environment(job, root)},
            ) as process,
        ):
            running.add(process)
            _pin(process.pid, core)
            code = process.wait()
            running.discard(process)
        lines = errors.read_text(errors="replace").strip().splitlines()
        if code == 0:
            errors.unlink(missing_ok=True)
            return Done(job)
        return Done(job, lines[-1] if lines else f"exit code {code}")


def _environment(job: Job, root: Path) -> dict[str, str]:
    """Environment variables for one thread per process and a shared cache of compiled programs."""
    flags = [os.environ.get("XLA_FLAGS", ""), "--xla_cpu_multi_thread_eigen=false"]
    if job.config.scale == "smoke":
        flags += QUICK_TO_COMPILE
    return {
        "XLA_FLAGS": " ".join(flags).strip(),
        "OMP_NUM_THREADS": "1",
        "JAX_COMPILATION_CACHE_DIR": str((root / COMPILED).resolve()),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
        # Programs with callbacks, which raise errors, cannot be cached. The loop checks for NaNs.
        "EQX_ON_ERROR": "nan",
    }


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _pin(process: int, core: int | None) -> None:
    if core is not None and hasattr(os, "sched_setaffinity"):
        try:
            os.sched_setaffinity(process, {core})
        except ProcessLookupError:
            pass
