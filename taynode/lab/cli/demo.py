"""`taynode demo`: the whole story in two minutes."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ..config import RegularizerConfig, TrainConfig
from ..tasks.base import find_task
from .tables import print_rows
from .train import run


CONTENDERS = {
    "unregularized": RegularizerConfig(),
    "R_2, sampled": RegularizerConfig("r2", 0.1),
}


def demo(
    *,
    out: Path = Path("runs/demo"),
    seed: int = 0,
    scale: str = "laptop",
    json_output: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Train the same model on digits without and with speed regularization, and compare.

    Parameters
    ----------
    out
        Where the runs and the page go; an earlier demo there is replaced.
    seed
        Of both runs.
    scale
        smoke for a quick look, laptop for the real thing.
    json_output
        Print the table as JSON, and nothing else.

    """
    from ..report.page import write_report

    task = find_task("digits")
    rows, runs = [], []
    for name, regularizer in CONTENDERS.items():
        directory = out / name.split(",")[0]
        shutil.rmtree(directory, ignore_errors=True)
        settings = demo_settings(task, regularizer, seed=seed, scale=scale)
        row = run(settings, task, directory, quiet=json_output or not sys.stderr.isatty())
        rows.append(_row(name, row))
        runs.append(directory)
    page = write_report(runs, out / "report.html")
    if json_output:
        print(json.dumps(rows))
        return
    print_rows(rows)
    before, after = rows[0]["NFE at 1e-5"], rows[1]["NFE at 1e-5"]
    change = 100 * (after / before - 1)
    print(f"Evaluations per sample: {before:.1f} -> {after:.1f} ({change:+.0f} %).")
    print(f"Page: {page}")


def demo_settings(
    task: Any, regularizer: RegularizerConfig, *, seed: int, scale: str
) -> TrainConfig:
    """The settings of a run of the demo: the task's own."""
    return dataclasses.replace(task.defaults(scale), regularizer=regularizer, seed=seed)


def _row(name: str, row: dict[str, Any]) -> dict[str, Any]:
    return {
        "": name,
        "test accuracy": 1 - row["test_error"],
        "test loss": row["test_loss"],
        "NFE at 1e-5": row["test_nfe"],
        "forward ms": 1e3 * row["forward_seconds"],
        "training s": row["train_seconds"],
    }
