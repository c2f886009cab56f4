"""Ray: two nodes give the rows of this machine alone, also if a worker or a node is killed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taynode.lab.sweep.executor import LocalExecutor
from taynode.lab.sweep.results import run_jobs
from taynode.lab.sweep.table import Table

from ..rows import comparable
from .ray_nodes import ALL_STRANGERS, ALONE, HERE, jobs, STRANGERS, TASK


pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
NAMESPACE = ["unshare", "--net", "--map-root-user", "--mount"]


@pytest.fixture(scope="module")
def sweep():
    """Calls `tests.lab.sweep.ray_nodes` in a network namespace, and returns what it wrote."""
    if shutil.which("unshare") is None or subprocess.run([*NAMESPACE, "true"]).returncode:
        pytest.skip("needs a network namespace, so that Ray listens on loopback alone")

    def sweep(root, disturbance):
        words = [sys.executable, "-m", "tests.lab.sweep.ray_nodes", str(root), disturbance]
        command = [*NAMESPACE, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return sweep


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    root = tmp_path_factory.mktemp("local")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)
        list(run_jobs(jobs(), root, LocalExecutor(2, tasks=[TASK])))
        return comparable(Table(root).results().values())


@pytest.mark.parametrize("disturbance", ["nothing", "worker", "node"])
def test_six_runs_on_two_nodes(sweep, expected, tmp_path, disturbance):
    printed = sweep(tmp_path, disturbance)
    assert ("disturbed" in printed) == (disturbance != "nothing")
    assert "num_nodes=2, num_running=2" in printed
    assert len(expected) == 6
    results = Table(tmp_path).results().values()
    assert comparable(results) == expected
    # What was killed has continued.
    assert not any("redone" in result for result in results)
    # No row twice.
    assert len((tmp_path / "tiny_task.Tiny.jsonl").read_text().splitlines()) == 6


def test_a_directory_that_a_node_does_not_share_is_found_out(sweep, tmp_path):
    printed = sweep(tmp_path, "not shared")
    assert "ConfigError: `out`: " in printed
    assert f"does not share {tmp_path / 'work'} with the machine" in printed
    assert not list(tmp_path.rglob("job.json"))


def test_a_cluster_lets_nobody_in_without_its_token(sweep, tmp_path):
    printed = sweep(tmp_path, ALL_STRANGERS)
    refused = "ConfigError: `address` 127.0.0.1:6399: the Ray cluster does not let this"
    # Each says it once.
    assert printed.count(refused) == len(STRANGERS), printed
    assert not list(tmp_path.rglob("job.json"))


def test_a_cluster_of_its_own_has_a_token(sweep, tmp_path):
    printed = sweep(tmp_path, ALONE)
    refused, *lines = printed.splitlines()
    assert refused == "`cpus_per_run`: no node of the Ray cluster has 4096 cores."
    assert lines == ["True ", "True ", "token 64"]
