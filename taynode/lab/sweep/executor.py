"""Who does the work: a small seam, for engines that know more machines than this one."""

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
# Where a run is over in a second, nearly all of its time is the compiler's.
QUICK_TO_COMPILE = "--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"


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
    - `worker`: the module that does a job, like `taynode.lab.sweep.worker`; another one knows more
        measurements.
    - `tasks`: those that jobs may have besides the built-in ones, as `module:Class`. Their modules
        are imported by the workers, so that each has to be one that you trust.
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
        """Do jobs, each in its own directory under a root."""
        waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        ended: queue.SimpleQueue[Done] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        running: set[subprocess.Popen] = set()
        # With less of them, the system knows better which cores are idle.
        pins = self.num_processes >= len(self.cores)

        def work(core: int | None) -> None:
            while True:
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    return
                # Whatever happens, the others go on.
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
            # Ctrl-C: they have checkpoints, and go on another time.
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
        # From the user, and not from the job, which may have been read from a file.
        command += [word for task in self.tasks for word in (TASK, task)]
        with (
            open(errors, "w") as stream,
            subprocess.Popen(
                command,
                # Never written to: it ends when this process does, however that comes about.
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
    """One thread a process, and programs that are compiled once for all runs that need them."""
    flags = [os.environ.get("XLA_FLAGS", ""), "--xla_cpu_multi_thread_eigen=false"]
    if job.config.scale == "smoke":
        flags += QUICK_TO_COMPILE
    return {
        "XLA_FLAGS": " ".join(flags).strip(),
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


def _pin(process: int, core: int | None) -> None:
    if core is not None and hasattr(os, "sched_setaffinity"):
        try:
            os.sched_setaffinity(process, {core})
        except ProcessLookupError:
            pass
