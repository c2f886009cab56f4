"""Sweeps of many runs: what their results cost, apart from the runs themselves.

`python -m benchmarks.results --count 10000` makes up the results of tiny runs, as workers leave
them, and measures what the command does with them. Each part is a process of its own, for its
memory. Prints a table.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from taynode.lab.config import TrainConfig
from taynode.lab.files import write_json
from taynode.lab.sweep.config import read_sweep, SweepConfig
from taynode.lab.sweep.directory import RESULT
from taynode.lab.sweep.points import points_of, rows_of
from taynode.lab.sweep.results import known_and_missing, WORK
from taynode.lab.sweep.rows import PARTS, row_of_result, VERSION
from taynode.lab.sweep.table import Table


DEFAULTS = TrainConfig("toy", "smoke")
NUM_SEEDS = 10
# As many numbers as a run on digits keeps.
NUMBERS = {f"metric_{i}": 0.123456789 * (i + 1) for i in range(30)}
EMPTY = {part: {} for part in PARTS}
HISTORY = [{f"metric_{i}": 0.123456789 * (i + 1) for i in range(12)} for _ in range(11)]


def sweep_of(count: int) -> SweepConfig:
    weights = [(i + 1) / 1000 for i in range(count // NUM_SEEDS)]
    values = {"settings": {"regularizer": "r2"}, "grid": {"weight": weights}}
    return read_sweep("many", {"task": "toy", "scale": "smoke", "seeds": NUM_SEEDS, **values})


def jobs_of(count: int):
    config = sweep_of(count)
    return [job for choice in config.choices() for job in config.jobs(choice, DEFAULTS)]


def make(root: Path, count: int) -> None:
    """As workers leave them."""
    for job in jobs_of(count):
        settings = job.as_dict()
        weight = job.config.regularizer.weight
        row = {**NUMBERS, "train_nfe": 10 + 1 / weight, "train_loss": weight}
        made = {**EMPTY, "version": VERSION, "identity": job.identity}
        made |= {"job": settings, "state": "finished", "row": row, "history": HISTORY}
        directory = job.directory(root / WORK)
        directory.mkdir(parents=True)
        write_json(directory / RESULT, row_of_result(made))


def plan(root: Path, count: int) -> None:
    known, missing = known_and_missing(jobs_of(count), root)
    assert (len(known), len(missing)) == (0, count)


def resume(root: Path, count: int) -> None:
    known, missing = known_and_missing(jobs_of(count), root)
    assert (len(known), len(missing)) == (count, 0)


def read(root: Path, count: int) -> None:
    assert len(Table(root).results()) == count


def append(root: Path, count: int) -> None:
    """Ten runs that end one after the other, in one process."""
    table = Table(root)
    for job in jobs_of(count + 10)[-10:]:
        made = {**EMPTY, "version": VERSION, "identity": job.identity}
        table.append({**made, "job": job.as_dict(), "config": job.as_dict()["config"]})
    table.forget(jobs_of(count + 10)[-10:])


def report(root: Path, count: int) -> None:
    config = sweep_of(count)
    points = points_of(config, config.choices(), DEFAULTS, Table(root).results())
    assert len(rows_of(points, config.objectives)) == count // NUM_SEEDS


PHASES: dict[str, Callable[[Path, int], None]] = {
    "plan a sweep without results": plan,
    "write results, as the workers do": make,
    "collect them, as after a kill": resume,
    "read the table": read,
    "resume a sweep that is done": resume,
    "append 10 rows, and forget them": append,
    "points and front": report,
}


def measured(phase: str, root: Path, count: int, answers) -> None:
    start, busy = time.perf_counter(), time.process_time()
    PHASES[phase](root, count)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    answers.put((seconds, busy, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.results")
    parser.add_argument("--count", type=int, default=10_000, help="number of results")
    count = parser.parse_args().count
    context = multiprocessing.get_context("spawn")
    print(f"| {count} results | seconds | of these busy | most memory, MB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for phase in PHASES:
            answers = context.SimpleQueue()
            process = context.Process(target=measured, args=(phase, root, count, answers))
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(process.exitcode)
            seconds, busy, megabytes = answers.get()
            print(f"| {phase} | {seconds:.1f} | {busy:.1f} | {megabytes:.0f} |", flush=True)
        size = sum(file.stat().st_size for file in root.glob("*.jsonl")) / 1e6
        print(f"\nThe table has {size:.1f} MB.")


if __name__ == "__main__":
    main()
