"""An executor that uses SLURM, by submitit. submitit pickles what it sends to the nodes."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..config import ConfigError, positive
from ..files import Json
from .executor import AbstractPool, Usage
from .executors import optional
from .plan import Job, job_from_dict
from .process import Launch, launch_from_here, ONE_CORE, Outcome, Resources, run_process, WORKER
from .shared import is_listed


FOLDER = ".submitit"
# SLURM ends a run after this time. It then continues from its checkpoint, up to so many times.
MINUTES, NUM_CONTINUATIONS = 60.0, 24
CAPACITY = 100
SECONDS_BETWEEN_LOOKS = 1.0
# The states of jobs that were not ended by their node or from outside.
ENDED = "FAILED", "COMPLETED"


class SlurmExecutor(AbstractPool[Any]):
    """Executes jobs with SLURM, by job arrays.

    The directory of the results must be on a file system that all nodes share. A run whose node
    dies, or that takes longer than `resources.minutes`, continues from its checkpoint. Variables of
    sbatch, such as SBATCH_PARTITION and SBATCH_ACCOUNT, choose everything else.

    **Arguments:**

    - `num_processes`: the number of runs that are submitted at the same time.
    - `worker`, `tasks`, `resources`: as for `LocalExecutor`.
    - `cluster`: `"slurm"`, or `"local"` for processes of this machine, for tests.
    """

    def __init__(
        self,
        num_processes: int | None = None,
        *,
        worker: str = WORKER,
        tasks: Sequence[str] = (),
        resources: Resources = ONE_CORE,
        cluster: str = "slurm",
    ):
        super().__init__()
        if num_processes is not None:
            positive("jobs", num_processes)
        self.num_processes, self.resources, self.cluster = num_processes, resources, cluster
        self.launch = launch_from_here(worker, tuple(tasks), resources.cpus)
        self.submitit: Any = optional("submitit", "slurm", "`executor` slurm")
        self.engine: Any = None

    @property
    def capacity(self) -> int:
        """The number of jobs at the same time."""
        return self.num_processes or CAPACITY

    def usage(self) -> Usage:
        """What is used now."""
        running = [job for job in self.running if job.state == "RUNNING"]
        nodes = {job.get_info(mode="cache").get("NodeList") for job in running}
        return Usage(max(1, len(nodes)), len(running))

    def prepare(self, root: Path) -> None:
        """Find SLURM."""
        minutes = MINUTES if self.resources.minutes is None else self.resources.minutes
        parameters: Json = {"name": "taynode", "cpus_per_task": self.resources.cpus}
        parameters["timeout_min"] = max(1, round(minutes))
        if self.resources.memory is not None:
            parameters["mem_gb"] = self.resources.memory
        try:
            self.engine = self.submitit.AutoExecutor(
                root.resolve() / FOLDER,
                cluster=self.cluster,
                slurm_max_num_timeout=NUM_CONTINUATIONS,
            )
        except RuntimeError as error:
            raise ConfigError(f"`executor` slurm: there is no SLURM here: {error}") from None
        self.engine.update_parameters(**parameters)

    def start(self, jobs: Sequence[Job], root: Path) -> list[Any]:
        """Submit some jobs, as one array."""
        where = str(root.resolve())
        runs = [Run(job.as_dict(), where, self.launch) for job in jobs]
        try:
            return self.engine.submit_array(runs) if len(runs) > 1 else [self.engine.submit(*runs)]
        except self.submitit.core.utils.FailedSubmissionError as error:
            raise ConfigError(
                f"`executor` slurm: SLURM does not accept the runs: {error}"
            ) from None

    def wait(self) -> list[Any]:
        """Wait until at least one of the running jobs has ended."""
        while not (ended := [job for job in self.running if job.done()]):
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return ended

    def outcome(self, handle: Any) -> Outcome:
        """How a job ended."""
        errors = self.submitit.core.utils
        try:
            return Outcome(*handle.result())
        except errors.FailedJobError as error:
            # The last line of the trace, which stands between lines of dashes.
            trace = str(error).rpartition("\n---")[0].splitlines()
            return Outcome(trace[-1] if trace else str(error))
        except errors.UncompletedJobError:
            if handle.state.startswith(ENDED) and not is_listed(handle.paths.stderr):
                raise ConfigError(
                    f"`out`: a run has ended on node {_node(handle)} and has left no log in "
                    f"{handle.paths.stderr.parent}, so the node does not share this directory "
                    "with the machine that runs this command: choose a directory on a file system "
                    "that all nodes share."
                ) from None
            return Outcome(f"Its node died (state {handle.state}).", is_lost=True)

    def cancel(self) -> None:
        """End the running jobs."""
        for job in self.running:
            job.cancel(check=False)


def _node(handle: Any) -> str:
    return handle.get_info(mode="cache").get("NodeList") or "(unknown)"


@dataclasses.dataclass(frozen=True)
class Run:
    """A run on a node, which submitit calls there."""

    job: Json
    root: str
    launch: Launch

    def __call__(self) -> tuple[str, bool]:
        """Execute the job, and return its error and whether it was lost."""
        outcome = run_process(job_from_dict(self.job), Path(self.root), self.launch)
        return outcome.error, outcome.is_lost

    def checkpoint(self):
        """What to submit when the time is over: the same, which continues from its checkpoint."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)
