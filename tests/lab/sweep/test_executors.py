"""Executors: any of them gives the same rows, and a run that is lost is not given up."""

import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from submitit.core.utils import UncompletedJobError

from taynode.lab.cli import main
from taynode.lab.cli.execution import Execution
from taynode.lab.config import ConfigError
from taynode.lab.sweep import process
from taynode.lab.sweep.executor import AbstractExecutor, LocalExecutor, NUM_RETRIES
from taynode.lab.sweep.executors import EXECUTORS
from taynode.lab.sweep.process import launch_from_here, Outcome, Resources, run_process
from taynode.lab.sweep.ray_executor import _run, RayExecutor
from taynode.lab.sweep.results import run_jobs, WORK
from taynode.lab.sweep.slurm_executor import SlurmExecutor
from taynode.lab.sweep.table import Table

from ..rows import comparable
from . import searching
from .pretend import DIES, DIES_ONCE, FAILS, HANGS_ONCE, job, SECONDS, WORKER
from .test_sweep import HERE, job as tiny_job, TASK


def by_seed(jobs, root, executor, **options):
    """What each run gave, by its seed."""
    return {j.config.seed: (r, e) for j, r, e in run_jobs(jobs, root, executor, **options)}


def kinds():
    return [LocalExecutor(2, worker=WORKER), SlurmExecutor(3, worker=WORKER, cluster="local")]


@pytest.mark.parametrize("executor", kinds(), ids=["local", "submitit"])
def test_a_process_that_is_killed_is_started_again_but_not_forever(tmp_path, executor):
    progress = []
    jobs = [job(seed) for seed in (0, DIES_ONCE, DIES, FAILS)]
    ended = by_seed(jobs, tmp_path, executor, on_progress=progress.append)
    for seed in (0, DIES_ONCE):
        result, error = ended[seed]
        assert (result["state"], error) == ("finished", "")
    assert ended[FAILS][0]["state"] == "failed"
    assert ended[DIES] == (None, "The process was ended by signal 9.")
    tries = {j.config.seed: j.directory(tmp_path / WORK) / "attempts.txt" for j in jobs}
    expected = {0: 1, DIES_ONCE: 2, DIES: 1 + NUM_RETRIES, FAILS: 1}
    assert {seed: len(file.read_text()) for seed, file in tries.items()} == expected
    assert [(x.count, x.total) for x in progress] == [(i, 4) for i in range(5)]
    assert progress[-1].failed == 2
    assert all(x.usage.num_running <= executor.capacity for x in progress)
    assert executor.running == {}


def test_a_job_may_depend_on_the_results_of_earlier_ones(tmp_path):
    """As long as it is not the only one for which there is room."""
    ended = []

    def jobs():
        for seed in range(3):
            assert len(ended) == seed
            yield job(seed)

    for done in LocalExecutor(1, worker=WORKER).execute(jobs(), tmp_path):
        ended.append(done)
    assert [done.job.config.seed for done in ended] == [0, 1, 2]


def test_nothing_is_connected_to_if_there_is_nothing_to_do(tmp_path):
    # There is no SLURM here, and it is not asked for.
    assert list(SlurmExecutor().execute([], tmp_path)) == []


def test_names_of_executors():
    for name in EXECUTORS:
        assert issubclass(EXECUTORS.find(name), AbstractExecutor)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--executor", "rya"], "`executor` 'rya' is not known: did you mean 'ray'?"),
        (["--address", "10.0.0.1:6379"], "`address` is that of a Ray cluster"),
        (["--executor", "ray", "--address", "nonsense"], "must be HOST:PORT"),
        (["--executor", "ray", "--address", "ray://10.0.0.1:10001"], "must be HOST:PORT"),
        (["--executor", "ray", "--address", "127.0.0.1:1"], "no Ray cluster answers there"),
        (["--executor", "slurm"], "there is no SLURM here"),
        (["--time-per-run", "5"], "`time_per_run` is a limit of SLURM"),
        (["--cpus-per-run", "0"], "`cpus_per_run` must be positive"),
        (["--cpus-per-run", "100000"], "`cpus_per_run` 100000: this machine has"),
        (["--memory-per-run", "1e9"], "`memory_per_run` 1e+09: this machine has"),
        (["--memory-per-run", "-1"], "`memory_per_run` must be positive"),
        (["--jobs", "0"], "`jobs` must be positive"),
    ],
)
def test_bad_options(words, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["paper", "run", "fig1-toy", "--scale", "smoke", "--out", str(tmp_path), *words])
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert "Traceback" not in printed
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("package", "extra", "make"),
    [
        ("ray", "ray", lambda path: Execution("ray").executor_for(worker=WORKER)),
        ("submitit", "slurm", lambda path: Execution("slurm").executor_for(worker=WORKER)),
        ("optuna", "search", searching.make),
    ],
)
def test_a_missing_package_is_named(package, extra, make, tmp_path, monkeypatch):
    # As if it were not installed.
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=rf"needs {package}: pip install 'taynode\[{extra}\]'"):
        make(tmp_path)


def test_room_on_this_machine():
    executor = LocalExecutor()
    assert executor.capacity == len(executor.cores)
    assert LocalExecutor(3).capacity == 3
    whole = Resources(cpus=len(executor.cores))
    assert LocalExecutor(resources=whole).places == [None]


@pytest.mark.slow
def test_a_run_that_takes_longer_than_slurm_allows_continues(tmp_path):
    # submitit asks a job to stop half a minute before its time is over.
    resources = Resources(minutes=1.0)
    executor = SlurmExecutor(1, worker=WORKER, cluster="local", resources=resources)
    ended = by_seed([job(HANGS_ONCE)], tmp_path, executor)
    result, error = ended[HANGS_ONCE]
    assert (result["state"], error) == ("finished", "")
    file = job(HANGS_ONCE).directory(tmp_path / WORK) / "attempts.txt"
    assert file.read_text() == "xx"


class Handle:
    """A job of SLURM that has ended without a result."""

    def __init__(self, state, log):
        self.state, self.paths = state, SimpleNamespace(stderr=log)

    def result(self):
        raise UncompletedJobError

    def get_info(self, mode):
        return {"NodeList": "node7"}


def test_a_directory_that_slurm_nodes_do_not_share_is_said_at_once(tmp_path):
    executor = SlurmExecutor(cluster="local")
    log = tmp_path / "1_0_log.err"
    # A node that dies may leave no log either, so such a run is tried again.
    assert executor.outcome(Handle("NODE_FAIL", log)).is_lost
    with pytest.raises(ConfigError, match=r"`out`: a run has ended on node node7 and has left no"):
        executor.outcome(Handle("FAILED", log))
    log.touch()
    assert executor.outcome(Handle("FAILED", log)).is_lost


def test_a_ray_node_that_joins_later_and_does_not_share_the_directory(tmp_path, monkeypatch):
    """BUG, fixed: it failed at once, and so got nearly all of the jobs that were left."""
    errors = dict.fromkeys(
        ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ObjectLostError", "RayError"),
        ZeroDivisionError,
    )
    ray: Any = ModuleType("ray")
    ray.get, ray.exceptions = lambda found: found, SimpleNamespace(**errors)
    monkeypatch.setitem(sys.modules, "ray", ray)
    executor = RayExecutor(address="10.0.0.1:6379")
    found = _run(job().as_dict(), str(tmp_path), executor.launch, str(tmp_path / ".shared-1"))
    with pytest.raises(ConfigError, match=r"`out`: .* does not share .* choose a directory"):
        executor.outcome(found)
    assert executor.outcome(("it failed", True, "")) == Outcome("it failed", is_lost=True)


@pytest.mark.slow
def test_submitit_gives_the_rows_of_the_local_executor(tmp_path, monkeypatch):
    monkeypatch.chdir(HERE)
    jobs = [tiny_job(seed) for seed in range(3)]
    tables = []
    for executor in (
        LocalExecutor(2, tasks=[TASK]),
        SlurmExecutor(2, tasks=[TASK], cluster="local"),
    ):
        root = tmp_path / type(executor).__name__
        ended = by_seed(jobs, root, executor)
        assert [error for _, error in ended.values()] == ["", "", ""]
        tables.append(comparable(Table(root).results().values()))
    local, submitted = tables
    assert submitted == local


def test_two_sweeps_on_one_job(tmp_path):
    """BUG, fixed: the second one missed the file for errors that the first one had deleted."""
    launch, ended = launch_from_here(WORKER, (), 1), []
    same = lambda process=None: ended.append(run_process(job(), tmp_path, launch))
    ended.append(run_process(job(), tmp_path, launch, on_start=same))
    assert ended == [Outcome(), Outcome()]
    assert not list(tmp_path.rglob("error.txt"))


def test_an_executor_that_was_closed_is_used_again(tmp_path, monkeypatch):
    """BUG, fixed: its cores were not free yet, "pop from empty list"."""
    monkeypatch.setenv(SECONDS, "0.3")
    executor = LocalExecutor(2, worker=WORKER)
    for start in (0, 10):
        ended = executor.execute([job(start + seed) for seed in range(5)], tmp_path)
        assert next(ended).error == ""
        ended.close()
    assert len(executor.places) == 2


def test_a_job_that_has_no_process_yet_is_cancelled_too(tmp_path, monkeypatch):
    """BUG, fixed: it started its process afterwards."""
    monkeypatch.setenv(SECONDS, "60")
    started, cancelled = threading.Event(), threading.Event()
    environment = process.environment

    def late(*args):
        started.set()
        assert cancelled.wait(30)
        return environment(*args)

    monkeypatch.setattr(process, "environment", late)
    executor = LocalExecutor(1, worker=WORKER)
    (handle,) = executor.start([job()], tmp_path)
    started.wait(30)
    threading.Timer(0.2, cancelled.set).start()
    executor.cancel()
    assert cancelled.is_set()
    assert executor.outcome(handle).is_lost
    assert not executor.processes
