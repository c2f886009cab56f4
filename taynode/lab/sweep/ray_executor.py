"""An executor that uses the nodes of a Ray cluster. Ray pickles what it sends to its workers."""

import contextlib
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..config import ConfigError, positive
from ..files import Json
from .executor import AbstractPool, Usage
from .executors import optional
from .plan import Job, job_from_dict
from .process import Launch, launch_from_here, ONE_CORE, Outcome, Resources, run_process, WORKER
from .shared import marked, why_not_shared


SECONDS_TO_CONNECT = 5.0
GIGABYTE = 10**9


class RayExecutor(AbstractPool[Any]):
    """Executes jobs on the nodes of a Ray cluster, each in a process of its own.

    The directory of the results must be on a file system that all nodes share. A run whose worker
    or node dies continues from its checkpoint on another node.

    **Arguments:**

    - `num_processes`: the number of runs at the same time; by default as many as the nodes have
        cores and memory for.
    - `worker`, `tasks`, `resources`: as for `LocalExecutor`.
    - `address`: the address of a cluster, `HOST:PORT` or `auto`. By default a cluster is started on
        this machine, with token authentication, and stopped in the end.
    """

    def __init__(
        self,
        num_processes: int | None = None,
        *,
        worker: str = WORKER,
        tasks: Sequence[str] = (),
        resources: Resources = ONE_CORE,
        address: str | None = None,
    ):
        super().__init__()
        if num_processes is not None:
            positive("jobs", num_processes)
        if resources.minutes is not None:
            raise ConfigError("`time_per_run` is a limit of SLURM: pass `--executor slurm`.")
        self.num_processes, self.resources, self.address = num_processes, resources, address
        self.launch = launch_from_here(worker, tuple(tasks), resources.cpus)
        if address is None:
            # Ray reads it when it is imported.
            os.environ["RAY_AUTH_MODE"] = "token"
        self.ray: Any = optional("ray", "ray", "`executor` ray")
        self.mark = ""
        self.context = contextlib.ExitStack()

    @property
    def capacity(self) -> int:
        """The number of jobs at the same time."""
        # When all nodes are gone, one job waits for a new node.
        return self.num_processes or max(1, self._room())

    def usage(self) -> Usage:
        """What is used now."""
        if not self.running:
            return Usage()
        return Usage(len(self._nodes()), min(len(self.running), self._room()))

    def prepare(self, root: Path) -> None:
        """Connect to the cluster, and check that its nodes have room and share the directory."""
        self.context.enter_context(self._connected())
        if not self._room():
            needed = f"{self.resources.cpus} cores"
            if self.resources.memory is not None:
                needed += f" and {self.resources.memory:g} GB of memory"
            raise ConfigError(f"`cpus_per_run`: no node of the Ray cluster has {needed}.")
        self.mark = str(self.context.enter_context(marked(root)))
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        check = self.ray.remote(num_cpus=0, max_retries=1)(why_not_shared)
        checks = []
        for node in self._nodes():
            only = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            checks.append(check.options(scheduling_strategy=only).remote(self.mark))
        for each in checks:
            try:
                problem = self.ray.get(each)
            except self.ray.exceptions.RayError as error:
                problem = f"a node cannot start runs: {_first_line(error)}"
            if problem:
                raise ConfigError(f"`out`: {problem}")

    def start(self, jobs: Sequence[Job], root: Path) -> list[Any]:
        """Start some jobs."""
        options = {"num_cpus": self.resources.cpus, "max_retries": 0}
        if self.resources.memory is not None:
            options["memory"] = int(self.resources.memory * GIGABYTE)
        task = self.ray.remote(**options)(_run)
        where = str(root.resolve())
        return [task.remote(job.as_dict(), where, self.launch, self.mark) for job in jobs]

    def wait(self) -> list[Any]:
        """Wait until at least one of the running jobs has ended."""
        ended, _ = self.ray.wait(list(self.running), num_returns=1)
        return ended

    def outcome(self, handle: Any) -> Outcome:
        """How a job ended."""
        errors = self.ray.exceptions
        try:
            *outcome, problem = self.ray.get(handle)
        except (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
        ) as error:
            return Outcome(f"Its Ray worker or node died: {_first_line(error)}", is_lost=True)
        except errors.RayError as error:
            return Outcome(f"{type(error).__name__}: {_first_line(error)}")
        if problem:
            # The others would fail there, too, and soon, so that the node would get them all.
            raise ConfigError(f"`out`: {problem}")
        return Outcome(*outcome)

    def cancel(self) -> None:
        """End the running jobs, and disconnect."""
        for handle in self.running:
            self.ray.cancel(handle, force=True)
        self.context.close()

    def _nodes(self) -> list[Json]:
        return [node for node in self.ray.nodes() if node["Alive"]]

    def _room(self) -> int:
        """The number of runs that the nodes have cores and memory for."""
        room = 0
        for node in self._nodes():
            has = node["Resources"]
            each = has.get("CPU", 0) // self.resources.cpus
            if self.resources.memory is not None:
                memory = has.get("memory", 0) / GIGABYTE
                each = min(each, memory // self.resources.memory)
            room += int(each)
        return room

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        where = f"`address` {self.address}"
        if self.address is None:
            where = "`executor` ray"
        elif self.address != "auto":
            _check_address(self.address)
        try:
            self.ray.init(
                self.address or "local",
                log_to_driver=False,
                logging_level="error",
                # The page of a cluster that we start would be one more server.
                **({} if self.address else {"include_dashboard": False}),
            )
        except (ConnectionError, self.ray.exceptions.AuthenticationError):
            raise ConfigError(
                f"{where}: the Ray cluster does not let this command in. If it asks for a token, "
                "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to the token of the cluster or "
                "RAY_AUTH_TOKEN_PATH to a file that has it."
            ) from None
        except (RuntimeError, ValueError, self.ray.exceptions.RayError) as error:
            raise ConfigError(f"{where}: cannot connect to Ray: {_first_line(error)}") from None
        try:
            yield
        finally:
            self.ray.shutdown()


def _run(job: Json, root: str, launch: Launch, mark: str) -> tuple[str, bool, str]:
    """Execute a job on a node, and return its error, whether it was lost, and what is wrong.

    The node may have joined after the others were checked.
    """
    if problem := why_not_shared(mark):
        return "", False, problem
    outcome = run_process(job_from_dict(job), Path(root), launch)
    return outcome.error, outcome.is_lost, ""


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise ConfigError(
            f"`address` {address!r} must be HOST:PORT of a Ray cluster to which this machine "
            "belongs, such as 10.0.0.1:6379, or auto."
        )
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise ConfigError(f"`address` {address}: no Ray cluster answers there: {error}.") from None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0]
