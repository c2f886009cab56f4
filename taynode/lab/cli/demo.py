"""`taynode demo`: the whole story in two minutes."""

import dataclasses
import shutil
import sys
from pathlib import Path

from ..config import RegularizerConfig
from ..files import Json
from ..tasks.names import find_task
from .tables import JsonOutput, print_rows


CONTENDERS = {
    "unregularized": RegularizerConfig(),
    "budget of 30": RegularizerConfig("r3", budget=30.0),
}


def demo(
    *,
    out: Path = Path("runs/demo"),
    seed: int = 0,
    scale: str = "laptop",
    json_output: JsonOutput = False,
) -> None:
    """Train the same model on digits without and with a budget of evaluations, and compare.

    Parameters
    ----------
    out
        Directory of the runs and of the page. An earlier demo in it is replaced.
    seed
        Seed of both runs.
    scale
        Size of the experiment: smoke for a quick look, laptop for the real one.

    """
    from ..report.page import write_report
    from .display import run

    task = find_task("digits")
    rows, runs = [], []
    for name, regularizer in CONTENDERS.items():
        directory = out / name.replace(" ", "-")
        shutil.rmtree(directory, ignore_errors=True)
        settings = dataclasses.replace(task.defaults(scale), regularizer=regularizer, seed=seed)
        row = run(settings, task, directory, quiet=json_output or not sys.stderr.isatty())
        rows.append(_row(name, row))
        runs.append(directory)
    page = write_report(runs, out / "report.html")
    print_rows(rows, as_json=json_output)
    if json_output:
        return
    before, after = rows[0]["NFE at 1e-5"], rows[1]["NFE at 1e-5"]
    change = 100 * (after / before - 1)
    print(f"Evaluations per sample: {before:.1f} -> {after:.1f} ({change:+.0f} %).")
    print(f"Page: {page}")


def _row(name: str, row: Json) -> Json:
    return {
        "": name,
        "test accuracy": 1 - row["test_error"],
        "test loss": row["test_loss"],
        "NFE at 1e-5": row["test_nfe"],
        "forward ms": 1e3 * row["forward_seconds"],
        "training s": row["train_seconds"],
    }
