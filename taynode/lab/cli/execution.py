"""Options of commands that execute many runs, and the progress of these."""

import dataclasses
import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cyclopts import Parameter

from ..config import ConfigError
from ..sweep.executors import EXECUTORS
from ..sweep.process import Resources


if TYPE_CHECKING:
    from ..sweep.executor import AbstractExecutor
    from ..sweep.results import RunsDone


@Parameter(name="*")
@dataclasses.dataclass(frozen=True)
class Execution:
    """Where runs are executed.

    Parameters
    ----------
    executor
        What executes runs: local (this machine), ray (the nodes of a Ray cluster) or slurm.
    address
        Address of a Ray cluster, HOST:PORT or auto; a cluster on this machine by default.
    jobs
        Number of runs at the same time; as many as there is room for by default, 100 for slurm.
    cpus_per_run
        Number of cores of a run.
    memory_per_run
        Memory of a run in GB; not limited by default.
    time_per_run
        Minutes after which SLURM ends a run, 60 by default; it continues from its checkpoint.

    """

    executor: str = "local"
    address: str | None = None
    jobs: int | None = None
    cpus_per_run: int = 1
    memory_per_run: float | None = None
    time_per_run: float | None = None

    def executor_for(self, *, worker: str, tasks: Sequence[str] = ()) -> "AbstractExecutor":
        """The executor of these options. Arguments are as for `LocalExecutor`."""
        resources = Resources(self.cpus_per_run, self.memory_per_run, self.time_per_run)
        options = {"worker": worker, "tasks": tasks, "resources": resources}
        if self.address is not None:
            if self.executor != "ray":
                raise ConfigError("`address` is that of a Ray cluster: pass `--executor ray`.")
            options["address"] = self.address
        return EXECUTORS.find(self.executor)(self.jobs, **options)


ON_THIS_MACHINE = Execution()


def check_figures() -> None:
    """Raise an error if figures cannot be drawn, before hours of training."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("Figures need matplotlib: pip install 'taynode[all]'.")


class ProgressPrinter:
    """Prints a line when a run has ended, with an estimate of the time left.

    - `name`: the name of the study, or the number of studies.
    - `clock`: returns the time in seconds.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic):
        self.name, self.clock, self.start, self.at_once = name, clock, clock(), 1

    def __call__(self, progress: "RunsDone") -> None:
        """Print a line."""
        print(self.words(progress), file=sys.stderr)

    def words(self, progress: "RunsDone") -> str:
        """The line: the runs that are done, running, waiting and failed, and the time left."""
        done, left = progress.count - progress.known, progress.total - progress.count
        words = f"{self.name}: {progress.count} of {progress.total} runs"
        if not done:
            return f"{words} have been done before" if progress.count else words
        if progress.failed:
            words += f", {progress.failed} failed"
        if left:
            running = min(left, progress.usage.num_running)
            nodes = progress.usage.num_nodes
            if running:
                words += f", {running} running on {nodes} node{'s' if nodes > 1 else ''}"
            words += f", {left - running} waiting"
            # The first runs to end stand for those that run beside them.
            self.at_once = max(self.at_once, running)
            each = (self.clock() - self.start) / max(done, min(self.at_once, done + left))
            words += f", {_duration(each * left)} left"
        return f"{words} ({progress.message})" if progress.message else words


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
