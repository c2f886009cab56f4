"""`taynode evaluate`."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...registry import one_of
from ..config import positive, SolveConfig
from .loaded import load_run, TaskName
from .tables import print_rows


def evaluate(
    run: Path,
    *,
    solver: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    steps: int | None = None,
    samples: int | None = None,
    split: str = "test",
    task: TaskName = None,
    json_output: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Loss, error, evaluations per sample, R_2, R_3, K and B of a trained model.

    Parameters
    ----------
    run
        The directory of a run, or a file with the parameters of one.
    solver
        Such as bosh3; that of the run's evaluation by default.
    rtol
        Relative tolerance; also the absolute one, if that is not given.
    atol
        Absolute tolerance.
    steps
        A fixed grid of that many steps.
    samples
        How many samples; all by default.
    split
        test or train.
    task
        The task as module:Class, if it is not a built-in one; this runs its module.
    json_output
        Print JSON, and nothing else.

    """
    one_of("split", split, ("test", "train"))
    if samples is not None:
        positive("samples", samples)
    from ..training.loading import config_of

    config = config_of(run)
    changes = {
        "solver": solver,
        "rtol": rtol,
        "atol": rtol if atol is None else atol,
        "steps": steps,
        "max_steps": 100_000,
    }
    changes = {k: v for k, v in changes.items() if v is not None}
    how = dataclasses.replace(config.evaluation, **changes)
    result = evaluate_run(run, how, split=split, samples=samples, task=task)
    if json_output:
        print(json.dumps(result))
        return
    rows = [{"": name, "value": value} for name, value in result.items()]
    print_rows(rows, f"{run}, {split} set, {how.solver} at rtol {how.rtol:g}")


def evaluate_run(
    run: Path,
    how: SolveConfig,
    *,
    split: str = "test",
    samples: int | None = None,
    task: TaskName = None,
) -> dict[str, Any]:
    """The same as plain numbers."""
    # Tolerances below the resolution of single precision are of no use.
    loaded = load_run(run, task, double=min(how.rtol, how.atol) < 1e-7)
    from ..training.evaluate import Evaluator

    evaluator = Evaluator(loaded.task, how, seed=loaded.config.seed)
    data = getattr(loaded.data, split)
    report = evaluator.report(loaded.model, data, samples, split=split)
    label = {"data": loaded.task.data_label} if loaded.task.data_label else {}
    return {**report, **evaluator.penalties(loaded.model, data, split=split), **label}
