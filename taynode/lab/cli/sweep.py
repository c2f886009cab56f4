"""`taynode sweep`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import ConfigError, TrainConfig
from ..files import write_json
from ..sweep.process import WORKER
from ..tasks.names import find_task, import_task
from .execution import check_figures, Execution, ON_THIS_MACHINE, ProgressPrinter
from .options import read_toml
from .tables import JsonOutput, print_rows


if TYPE_CHECKING:
    from ..sweep.config import SweepConfig
    from ..sweep.executor import AbstractExecutor
    from ..sweep.points import Point

SECONDS = "train_seconds"


class SweepFailed(Exception):
    """Some runs of a sweep could not be done. The message says why."""


def sweep(
    *configs: Path,
    task: str | None = None,
    out: Path = Path("results"),
    execution: Execution = ON_THIS_MACHINE,
    json_output: JsonOutput = False,
) -> None:
    """Train over a grid of settings, or search for the best ones with Optuna.

    Runs that have results are not repeated. A sweep that was killed continues when it is called
    again, and several calls may share a search. Prints a table, and draws the fronts of all sweeps
    that are named.

    Parameters
    ----------
    configs
        TOML files, one for each sweep: a task, its settings, and a grid or a search.
    task
        Task of all runs, which replaces that of the files. A task of your own, module:Class, can
        only be named here.
    out
        Directory of the results, with a folder for each scale; runs are kept in its table.

    """
    from ..sweep.config import read_sweep
    from ..sweep.points import rows_of

    if not configs:
        raise ConfigError("`configs`: name at least one TOML file.")
    sweeps = [read_sweep(file.stem, read_toml(file), task=task) for file in configs]
    if len({config.name for config in sweeps}) < len(sweeps):
        raise ConfigError("`configs`: the files must have different names.")
    if len({(config.scale, config.objectives) for config in sweeps}) > 1:
        raise ConfigError("`configs`: sweeps of one figure must have one scale and objectives.")
    check_figures()
    tasks = {
        config.task: import_task(task) if task else find_task(config.task) for config in sweeps
    }
    defaults = {config.name: tasks[config.task].defaults(config.scale) for config in sweeps}
    for config in sweeps:
        config.check_regularizer(defaults[config.name])
    executor = execution.executor_for(worker=WORKER, tasks=[task] if task else [])
    root = out / sweeps[0].scale
    directory = root / "sweeps"
    directory.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Point]] = {}
    problems = []
    for config in sweeps:
        points, errors = _run(config, defaults[config.name], root, executor, quiet=json_output)
        if errors:
            why = errors[0].rstrip(".")
            problems.append(f"{config.name}: {len(errors)} runs could not be done, such as: {why}.")
        rows = rows_of(points, config.objectives)
        seconds = sum(x.values.get(SECONDS, 0) * (x.num_seeds - x.num_failed) for x in points)
        record = {"sweep": config.name, "task": config.task, "scale": config.scale}
        record |= {"objectives": config.objectives, SECONDS: seconds, "points": rows}
        write_json(directory / f"{config.name}.json", record)
        found[config.name] = points
        if json_output:
            print(json.dumps(record))
        else:
            title = f"{config.name}: {config.task}, {seconds:.0f} s of training in all"
            print_rows(rows, title)
    stem = directory / "-".join(found)
    _draw(found, sweeps[0].objectives, stem)
    if not json_output:
        print(f"Figure: {stem}.png")
    if problems:
        raise SweepFailed(f"{' '.join(problems)} Call it again to try them again.")


def _run(
    config: "SweepConfig",
    defaults: TrainConfig,
    root: Path,
    executor: "AbstractExecutor",
    *,
    quiet: bool,
) -> "tuple[list[Point], list[str]]":
    """Execute the runs of a sweep, and return its points and the errors of runs without results."""
    from ..sweep.points import check_objectives, points_of
    from ..sweep.results import run_jobs
    from ..sweep.table import Table

    runs = root / "runs"
    watch = None if quiet else ProgressPrinter(config.name)
    if config.search is None:
        choices, results, errors = config.choices(), {}, []
        jobs = [job for choice in choices for job in config.jobs(choice, defaults)]
        for job, result, error in run_jobs(jobs, runs, executor, on_progress=watch):
            check_objectives(config, result)
            if result is None:
                errors.append(error)
            else:
                results[job] = result
    else:
        from ..sweep.search import Search

        search = Search(config, defaults, runs, root / "sweeps")
        search.run(executor, on_progress=watch)
        choices, errors, results = search.choices(), search.errors, Table(runs).results()
        if (elsewhere := search.num_elsewhere()) and not quiet:
            print(f"Trials that run elsewhere: {elsewhere}. Call it again when they have ended.")
    return points_of(config, choices, defaults, results), errors


def _draw(found: "dict[str, list[Point]]", objectives: tuple[str, str], stem: Path) -> None:
    """Draw the points and the front of each sweep."""
    from ..paper.chart import Chart, Line, Panel
    from ..paper.print import save
    from ..sweep.points import front_of

    marks = []
    for color, (name, points) in enumerate(found.items(), 1):
        known = [point for point in points if point.values]
        front = front_of(points, objectives)
        for some, dots in ((known, True), (front, False)):
            x, y = ([point.values[each] for point in some] for each in objectives)
            label = "" if dots else name
            marks.append(Line(x, y, label, color, joined=not dots, dots=dots, size=3.0))
    x, y = (name.replace("_", " ").replace("nfe", "NFE") for name in objectives)
    save(Chart([Panel(marks, x=x, y=y)]), stem)
