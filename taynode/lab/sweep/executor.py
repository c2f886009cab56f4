"""Executors of jobs: the interface, and the executor that uses this machine."""

import abc
import concurrent.futures
import dataclasses
import itertools
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from ..config import ConfigError, positive
from .plan import Job
from .process import launch_from_here, ONE_CORE, Outcome, Resources, run_process, WORKER


H = TypeVar("H")
# How often a run is started again after the machine on which it ran has died.
NUM_RETRIES = 3


@dataclasses.dataclass(frozen=True)
class Done:
    """A job that has ended. If it has no result, `error` says why."""

    job: Job
    error: str = ""


@dataclasses.dataclass(frozen=True)
class Usage:
    """The machines that an executor uses now, and the number of jobs that run on them."""

    num_nodes: int = 1
    num_running: int = 0


class AbstractExecutor(abc.ABC):
    """Executes jobs, in any order."""

    @abc.abstractmethod
    def execute(self, jobs: Iterable[Job], root: Path) -> Iterator[Done]:
        """Execute jobs, each in its own directory below a root, and yield each when it ends.

        Jobs that are no sequence are taken one by one, when there is room for one more. So a later
        job may depend on the results of earlier ones.
        """

    def usage(self) -> Usage:
        """What is used now."""
        return Usage()


class AbstractPool(AbstractExecutor, Generic[H]):
    """Executes a limited number of jobs at the same time, and starts jobs again that were lost.

    A subclass starts jobs and waits for them. `H` is what it knows a started job by.
    """

    def __init__(self):
        self.running: dict[H, Job] = {}

    @property
    @abc.abstractmethod
    def capacity(self) -> int:
        """The number of jobs at the same time."""

    @abc.abstractmethod
    def start(self, jobs: Sequence[Job], root: Path) -> list[H]:
        """Start some jobs."""

    @abc.abstractmethod
    def wait(self) -> list[H]:
        """Wait until at least one of the running jobs has ended."""

    @abc.abstractmethod
    def outcome(self, handle: H) -> Outcome:
        """How a job ended."""

    @abc.abstractmethod
    def cancel(self) -> None:
        """End the running jobs."""

    def prepare(self, root: Path) -> None:
        """Prepare to execute jobs. Raises a `ConfigError` if that is impossible."""
        del root

    def usage(self) -> Usage:
        """What is used now."""
        return Usage(1, len(self.running))

    def execute(self, jobs: Iterable[Job], root: Path) -> Iterator[Done]:
        """Execute jobs, each in its own directory below a root, and yield each when it ends."""
        waiting = iter(jobs)
        # Nothing is connected to if there is nothing to do.
        if (first := next(waiting, None)) is None:
            return
        waiting = itertools.chain([first], waiting)
        losses: dict[Job, int] = {}

        def fill() -> None:
            room = max(0, self.capacity - len(self.running))
            self._start(list(itertools.islice(waiting, room)), root)

        try:
            self.prepare(root)
            fill()
            while self.running:
                for handle in self.wait():
                    job = self.running.pop(handle)
                    ended = self.outcome(handle)
                    if ended.is_lost:
                        losses[job] = losses.get(job, 0) + 1
                        if losses[job] <= NUM_RETRIES:
                            self._start([job], root)
                            continue
                    # No core waits for what is done with a result, but a search waits for it.
                    if isinstance(jobs, Sequence):
                        fill()
                    yield Done(job, ended.error)
                fill()
        finally:
            # After Ctrl-C, for example. The runs have checkpoints to continue from.
            self.cancel()
            self.running.clear()

    def _start(self, jobs: Sequence[Job], root: Path) -> None:
        if jobs:
            self.running |= dict(zip(self.start(jobs, root), jobs, strict=True))


class LocalExecutor(AbstractPool[concurrent.futures.Future]):
    """Executes jobs in processes of this machine, one per core.

    **Arguments:**

    - `num_processes`: the number of processes; as many as there are cores and memory for by
        default.
    - `worker`: the module that executes a job, such as `taynode.lab.sweep.worker`. Another module
        may add measurements.
    - `tasks`: tasks that are not built in but that jobs may have, as `module:Class`. The workers
        import these modules, so you have to trust them.
    - `resources`: what a run needs.
    """

    def __init__(
        self,
        num_processes: int | None = None,
        *,
        worker: str = WORKER,
        tasks: Sequence[str] = (),
        resources: Resources = ONE_CORE,
    ):
        super().__init__()
        self.launch = launch_from_here(worker, tuple(tasks), resources.cpus)
        self.cores = _cores()
        if num_processes is not None:
            positive("jobs", num_processes)
        if resources.minutes is not None:
            raise ConfigError("`time_per_run` is a limit of SLURM: pass `--executor slurm`.")
        self.num_processes = num_processes or _room(resources, len(self.cores))
        # With fewer processes than cores, the system should choose idle cores.
        pins = self.num_processes >= len(self.cores) and resources.cpus == 1
        places = itertools.cycle(self.cores if pins else [None])
        self.places = list(itertools.islice(places, self.num_processes))
        self.processes: set[subprocess.Popen] = set()
        self.threads: list[threading.Thread] = []
        self.is_cancelled = False

    @property
    def capacity(self) -> int:
        """The number of jobs at the same time."""
        return self.num_processes

    def start(self, jobs: Sequence[Job], root: Path) -> list[concurrent.futures.Future]:
        """Start some jobs, each in a thread that waits for its process."""
        self.is_cancelled = False
        self.threads = [thread for thread in self.threads if thread.is_alive()]
        futures = []
        for job in jobs:
            futures.append(future := concurrent.futures.Future())
            words = job, root, self.places.pop(0), future
            thread = threading.Thread(target=self._run, args=words, daemon=True)
            thread.start()
            self.threads.append(thread)
        return futures

    def wait(self) -> list[concurrent.futures.Future]:
        """Wait until at least one of the running jobs has ended."""
        first = concurrent.futures.FIRST_COMPLETED
        return list(concurrent.futures.wait(self.running, return_when=first).done)

    def outcome(self, handle: concurrent.futures.Future) -> Outcome:
        """How a job ended."""
        return handle.result()

    def cancel(self) -> None:
        """End the running jobs, and wait until their cores are free."""
        # Threads that have not started their process yet end it when they have.
        self.is_cancelled = True
        for process in list(self.processes):
            process.kill()
        for thread in self.threads:
            thread.join()

    def _run(self, job: Job, root: Path, core: int | None, future: concurrent.futures.Future):
        started = []

        def on_start(process: subprocess.Popen) -> None:
            started.append(process)
            self.processes.add(process)
            if self.is_cancelled:
                process.kill()
            _pin(process.pid, core)

        # An error of one job must not stop the others.
        try:
            outcome = run_process(job, root, self.launch, on_start)
        except Exception as error:
            outcome = Outcome(f"{type(error).__name__}: {error}")
        self.processes.difference_update(started)
        self.places.append(core)
        future.set_result(outcome)


def _room(resources: Resources, num_cores: int) -> int:
    """The number of runs that this machine has cores and memory for."""
    if resources.cpus > num_cores:
        raise ConfigError(
            f"`cpus_per_run` {resources.cpus}: this machine has {num_cores} cores for runs."
        )
    room = num_cores // resources.cpus
    if resources.memory is None:
        return room
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    if resources.memory > memory:
        raise ConfigError(
            f"`memory_per_run` {resources.memory:g}: this machine has {memory:.3g} GB of memory."
        )
    return min(room, int(memory // resources.memory))


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
