"""`taynode evaluate`."""

import dataclasses
import json

from ...registry import one_of
from ..config import positive
from ..flags import tolerances
from .loaded import load_run, RunPath, TaskName
from .tables import JsonOutput, print_rows


MOST_STEPS = 100_000


def evaluate(
    run: RunPath,
    *,
    solver: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    steps: int | None = None,
    samples: int | None = None,
    split: str = "test",
    task: TaskName = None,
    json_output: JsonOutput = False,
) -> None:
    """Loss, error, evaluations per sample, R_2, R_3, K and B of a trained model.

    Parameters
    ----------
    solver
        Solver, such as bosh3; that of the run's evaluation by default.
    rtol
        Relative tolerance; also the absolute one unless that is given.
    atol
        Absolute tolerance.
    steps
        Number of steps of a fixed grid, which replaces adaptive steps.
    samples
        Number of samples; all by default.
    split
        Part of the data: test or train.

    """
    one_of("split", split, ("test", "train"))
    if samples is not None:
        positive("samples", samples)
    from ..training.evaluate import Evaluator
    from ..training.loading import config_of

    config = config_of(run).evaluation
    solve = dataclasses.replace(
        config,
        solver=config.solver if solver is None else solver,
        steps=config.steps if steps is None else steps,
        max_steps=MOST_STEPS,
        **tolerances(rtol, atol),
    )
    loaded = load_run(run, task, double=solve.needs_double)
    evaluator = Evaluator(loaded.task, solve, seed=loaded.config.seed)
    data = getattr(loaded.data, split)
    report = evaluator.report(loaded.model, data, samples, split=split)
    label = {"data": loaded.task.data_label} if loaded.task.data_label else {}
    result = {**report, **evaluator.penalties(loaded.model, data, split=split), **label}
    if json_output:
        print(json.dumps(result))
        return
    rows = [{"": name, "value": value} for name, value in result.items()]
    print_rows(rows, f"{run}, {split} set, {solve.solver} at rtol {solve.rtol:g}")
