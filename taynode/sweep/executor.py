"""Who does the work: a small seam, for engines that know more machines than this one."""

import abc
import dataclasses
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..training.config import positive
from .plan import Job


COMPILED = ".compiled"


@dataclasses.dataclass(frozen=True)
class Done:
    """A job that has ended; an error says why it has no result."""

    job: Job
    error: str = ""


class AbstractExecutor(abc.ABC):
    """Does jobs, in whatever order, and tells of each when it has ended."""

    @abc.abstractmethod
    def execute(self, jobs: Sequence[Job], root: Path) -> Iterator[Done]:
        """Do jobs, each in its own directory under a root."""


class LocalExecutor(AbstractExecutor):
    """Processes on this machine, one per core: small programs gain nothing from a second core.

    **Arguments:**

    - `num_processes`: how many at once; as many as there are cores by default.
    """

    def __init__(self, num_processes: int | None = None):
        self.cores = _cores()
        if num_processes is not None:
            positive("jobs", num_processes)
        self.num_processes = num_processes or len(self.cores)

    def execute(self, jobs: Sequence[Job], root: Path) -> Iterator[Done]:
        """Do jobs, each in its own directory under a root."""
        waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        ended: queue.SimpleQueue[Done] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        running: set[subprocess.Popen] = set()

        def work(core: int) -> None:
            while True:
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    return
                # Whatever happens, the others go on.
                try:
                    done = _run(job, root, core, running)
                except Exception as error:
                    done = Done(job, f"{type(error).__name__}: {error}")
                ended.put(done)

        for i in range(min(self.num_processes, len(jobs))):
            core = self.cores[i % len(self.cores)]
            threading.Thread(target=work, args=(core,), daemon=True).start()
        try:
            for _ in jobs:
                yield ended.get()
        finally:
            # Ctrl-C: they have checkpoints, and go on another time.
            while not waiting.empty():
                waiting.get()
            for process in list(running):
                process.kill()


def _run(job: Job, root: Path, core: int, running: set[subprocess.Popen]) -> Done:
    directory = job.directory(root)
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "job.json"
    file.write_text(json.dumps(job.as_dict(), indent=2) + "\n")
    command = [sys.executable, "-m", "taynode.sweep.worker", str(file), str(directory)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **_environment(root)},
    )
    _pin(process.pid, core)
    running.add(process)
    _, errors = process.communicate()
    running.discard(process)
    if process.returncode == 0:
        return Done(job)
    lines = errors.strip().splitlines()
    (directory / "error.txt").write_text(errors)
    return Done(job, lines[-1] if lines else f"exit code {process.returncode}")


def _environment(root: Path) -> dict[str, str]:
    """One thread a process, and programs that are compiled once for all runs that need them."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    return {
        "XLA_FLAGS": flags,
        "OMP_NUM_THREADS": "1",
        "JAX_COMPILATION_CACHE_DIR": str((root / COMPILED).resolve()),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
        # Programs that call back to raise errors cannot be stored. The loop finds NaNs in training.
        "EQX_ON_ERROR": "nan",
    }


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _pin(process: int, core: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        try:
            os.sched_setaffinity(process, {core})
        except ProcessLookupError:
            pass
