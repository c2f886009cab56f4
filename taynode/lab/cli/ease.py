"""`taynode ease`."""

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...registry import REGULARIZERS
from ..config import ConfigError
from ..files import Json
from ..tasks.names import import_task
from .loaded import RunPath, Seed, TaskName
from .tables import JsonOutput, print_rows
from .weight import USUAL


def ease(
    run: RunPath,
    *,
    budget: float | None = None,
    within: str | None = None,
    regularizer: Annotated[str, Parameter(help=f"Regularizer: {', '.join(REGULARIZERS)}.")] = USUAL,
    steps: int | None = None,
    samples: int = 500,
    seed: Seed = 0,
    out: Path | None = None,
    task: TaskName = None,
    json_output: JsonOutput = False,
) -> None:
    """Make a trained model cheap to solve.

    The model is trained further while the weight of a regularizer rises, and then refitted. The
    result is a directory with models from the given one to the cheapest, their numbers in
    front.json, and a page on which to pick one. After Ctrl-C or a kill, the same command continues.

    Parameters
    ----------
    budget
        Evaluations of a sample to allow, with the solver and tolerance of evaluations.
    within
        Loss to allow above that of the given model, such as 1% or, in units of the loss, 0.02.
        Without --budget and --within, models along the whole front are refitted.
    steps
        Number of training steps; half of those of the run by default.
    samples
        Number of samples on which models are compared: validation data, or training data if the
        task has no validation data.
    out
        Directory of the result; RUN-eased by default.

    """
    if not run.exists():
        raise ConfigError(f"`run` {run}: there is no such directory or file.")
    import jax

    from ..report.front import write_front
    from ..training.eased import EasedDirectory
    from ..training.easing import ease_run, EaseConfig
    from ..training.loading import config_of, load
    from ..training.loop import Interrupted
    from .display import Display

    config = EaseConfig(budget, within, regularizer, steps, samples, seed)
    settings = config_of(run)
    # The model keeps its precision, whatever the evaluation needs.
    if settings.precision == "float64" or settings.evaluation.needs_double:
        jax.config.update("jax_enable_x64", True)
    loaded = load(run, task=None if task is None else import_task(task))
    directory = EasedDirectory(out or _next_to(run))
    directory.claim(loaded, config)
    shown = not json_output and sys.stderr.isatty()
    try:
        with Display(str(directory.path), enabled=shown) as display:
            front = ease_run(loaded, config, directory.state, on_progress=display.show_easing)
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. The same command continues in {directory.path}.") from None
    content = directory.write(run, loaded, config, front)
    page = write_front(directory.path, task)
    if json_output:
        print(json.dumps(content))
        return
    print_rows(_rows(content), f"{run}, eased with {regularizer}")
    if content["message"]:
        print(content["message"])
    if content["data"]:
        print(f"Data: {content['data']}.")
    print(f"Page: {page}")


def _next_to(run: Path) -> Path:
    name = run.stem if run.is_file() else run.resolve().name
    return run.resolve().with_name(f"{name}-eased")


def _rows(content: Json) -> list[Json]:
    """The given model, the refitted ones and the chosen one, for the terminal."""
    columns = {"nfe": "NFE", "loss": f"{content['split']} loss", "test_nfe": "test NFE"}
    columns |= {"test_loss": "test loss", "test_error": "test error"}
    rows = []
    for index, point in enumerate(content["points"]):
        is_chosen = index == content["chosen"]
        if point["kind"] == "scouted" and not is_chosen:
            continue
        known = {title: point[name] for name, title in columns.items() if name in point}
        model = {"": point["kind"] + (", chosen" if is_chosen else "")}
        rows.append(model | known | {"weight": point["weight"], "file": point["file"]})
    return rows
