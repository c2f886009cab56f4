"""The table of results: no row is lost, none is passed off as another's."""

import dataclasses
import json
import multiprocessing

import pytest

from taynode import __version__
from taynode.lab.config import TrainConfig
from taynode.lab.sweep import plan, rows
from taynode.lab.sweep.plan import Job
from taynode.lab.sweep.rows import PARTS, VERSION
from taynode.lab.sweep.table import Table


def job(seed=0, **changes):
    return Job(TrainConfig(task="toy", seed=seed, **changes))


def result(job, **parts):
    settings = job.as_dict()
    return {
        **dict.fromkeys(PARTS),
        "version": VERSION,
        "identity": job.identity,
        "job": settings,
        "config": settings["config"],
        "evaluations": {},
        "measured": {},
        "environment": {"taynode": __version__},
        **parts,
    }


def append_many(root, first):
    for seed in range(first, first + 20):
        # Longer than what a file system writes at once.
        Table(root).append(result(job(seed), message="x" * 20_000))


def test_results_come_back_as_they_were(tmp_path):
    table = Table(tmp_path / "runs")
    assert table.results() == {}
    results = {job(seed): result(job(seed), row={"loss": seed / 3}) for seed in range(3)}
    for each in results.values():
        table.append(each)
    assert table.results() == results
    # Nothing is kept twice.
    table.append(results[job(1)])
    assert len((tmp_path / "runs" / "toy.jsonl").read_text().splitlines()) == 3


def test_tasks_have_a_file_each(tmp_path):
    own = Job(TrainConfig(task="../my module:Task"))
    for each in (job(), own):
        Table(tmp_path / "runs").append(result(each))
    names = sorted(path.name for path in (tmp_path / "runs").glob("*.jsonl"))
    assert names == ["...my.module.Task.jsonl", "toy.jsonl"]
    assert Table(tmp_path / "runs").results().keys() == {job(), own}


@pytest.mark.parametrize("cut", [1, 2, 100])
def test_a_row_that_was_cut_off_is_skipped_and_repaired(tmp_path, cut):
    table, file = Table(tmp_path), tmp_path / "toy.jsonl"
    for seed in range(2):
        table.append(result(job(seed)))
    file.write_bytes(file.read_bytes()[:-cut])
    assert table.results().keys() == {job(0)}
    # Before, so that the next row does not become a part of it.
    table.append(result(job(2)))
    table.append(result(job(1)))
    assert table.results().keys() == {job(0), job(1), job(2)}
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_damage_in_the_middle_costs_one_row(tmp_path):
    table, file = Table(tmp_path), tmp_path / "toy.jsonl"
    for seed in range(3):
        table.append(result(job(seed)))
    lines = file.read_bytes().split(b"\n")
    lines[1] = b"\xff" + lines[1][: len(lines[1]) // 2]
    file.write_bytes(b"\n".join(lines))
    with pytest.warns(UserWarning, match=r"toy.jsonl: 1 of its lines cannot be used, .* line 2"):
        assert table.results().keys() == {job(0), job(2)}


def test_processes_that_append_at_the_same_time_do_not_disturb_each_other(tmp_path):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=append_many, args=(tmp_path, 20 * i)) for i in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert Table(tmp_path).results().keys() == {job(seed) for seed in range(60)}


def test_a_table_notices_what_others_do_to_its_file(tmp_path):
    """It does not read lines again, unless the file is another one."""
    one, other = Table(tmp_path), Table(tmp_path)
    for seed, table in enumerate((one, other, one, other)):
        table.append(result(job(seed)))
    one.append(result(job(3)))
    assert len((tmp_path / "toy.jsonl").read_text().splitlines()) == 4
    other.forget([job(0), job(3)])
    one.append(result(job(3)))
    one.append(result(job(2)))
    assert one.results().keys() == {job(1), job(2), job(3)}
    (tmp_path / "toy.jsonl").write_text("")
    one.append(result(job(1)))
    assert one.results().keys() == {job(1)}


def test_the_last_result_of_a_job_counts(tmp_path):
    table = Table(tmp_path)
    for state in ("failed", "finished"):
        table.append(result(job(), state=state))
    assert table.results()[job()]["state"] == "finished"


def test_what_is_forgotten_is_gone_and_the_rest_is_not(tmp_path):
    table, file = Table(tmp_path), tmp_path / "toy.jsonl"
    for seed in range(3):
        table.append(result(job(seed)))
    with open(file, "a") as stream:
        stream.write('{"version": 1000, "from": "a later version"}\n')
    table.forget([job(0), job(2), job(7)])
    with pytest.warns(UserWarning, match="its version is 1000"):
        assert table.results().keys() == {job(1)}
    assert "a later version" in file.read_text()


@dataclasses.dataclass(frozen=True)
class Later(TrainConfig):
    """The settings of a later version, in which a default is another."""

    epochs: int = TrainConfig.epochs + 1


def test_a_changed_default_neither_orphans_nor_falsifies_a_row(tmp_path, monkeypatch):
    """A row belongs to a job if all settings agree, and not only those that are not defaults."""
    few, more = job(), job(epochs=Later.epochs)
    for each in (few, more):
        Table(tmp_path).append(result(each))
    monkeypatch.setattr(plan, "TrainConfig", Later)
    found = Table(tmp_path).results()
    default, explicit = Job(Later("toy")), Job(Later("toy", epochs=TrainConfig.epochs))
    assert found[default]["config"]["epochs"] == Later.epochs
    assert found[explicit]["config"]["epochs"] == TrainConfig.epochs
    assert (default.identity, explicit.identity) == (more.identity, few.identity)


def test_rows_of_earlier_versions_are_upgraded(tmp_path, monkeypatch):
    Table(tmp_path).append(result(job(scale="smoke")))

    def renamed(row):
        """What was the scale `smoke` is called `paper`."""
        row["job"]["config"]["scale"] = "paper"
        return row

    monkeypatch.setattr(rows, "VERSION", VERSION + 1)
    with pytest.warns(UserWarning, match=f"no way from version {VERSION}"):
        assert Table(tmp_path).results() == {}
    monkeypatch.setattr(rows, "UPGRADES", {VERSION: renamed})
    ((upgraded, found),) = Table(tmp_path).results().items()
    assert upgraded == job(scale="paper")
    assert found["config"]["scale"] == "paper"
    assert found["identity"] == upgraded.identity
