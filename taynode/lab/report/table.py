"""The numbers of some runs side by side."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..files import Json
from .formats import fixed, is_number, MISSING, number, percent, setting
from .runs import read_runs, StoredRun


class Column(NamedTuple):
    """A column: the key of its value in a row, its title, and the text of a value."""

    key: str
    title: str
    hint: str
    show: Callable[[object], str]
    is_text: bool = False


def _milliseconds(value: object) -> str:
    return number(1000 * value) if is_number(value) else MISSING


COLUMNS = (
    Column("run", "Run", "The directory", str, is_text=True),
    Column("task", "Task", "What was learned", setting, is_text=True),
    Column("regularizer", "Regularizer", "Regularizer of the run", setting, is_text=True),
    Column("weight", "Weight", "Of the penalty in the loss", setting),
    Column("quadrature", "Quadrature", "How the penalty is integrated", setting, is_text=True),
    Column("state", "State", "How the run ended, if not well", setting, is_text=True),
    Column("seed", "Seed", "Of weights, order of data and noise", setting),
    Column("test_error", "Test error", "Share of samples classified wrongly", percent),
    Column("test_loss", "Test loss", "Mean, without the penalty", number),
    Column("test_mse", "MSE", "Mean square error of what the model has seen", number),
    Column("test_interpolation_mse", "Interpolation", "MSE, every other time seen", number),
    Column("test_extrapolation_mse", "Extrapolation", "MSE, the first half seen", number),
    Column("test_auc", "AUC", "Area under the curve of the predicted risk", number),
    Column("test_nfe", "NFE", "Evaluations of the vector field per test sample, mean", fixed),
    Column("test_nfe_std", "NFE std", "Their standard deviation over samples", fixed),
    Column("r2", "R_2", "Mean square second derivative", number),
    Column("r3", "R_3", "Mean square third derivative", number),
    Column("kinetic", "K", "Kinetic energy: mean square velocity", number),
    Column("jacobian", "B", "Squared Frobenius norm of the Jacobian", number),
    Column("forward_seconds", "Forward ms", "A forward solve of a batch", _milliseconds),
    Column("train_seconds", "Training s", "Wall-clock time of all steps", fixed),
    Column("compile_seconds", "Compile s", "Wall-clock time of the compiler", fixed),
)


def compare_table(runs: Sequence[str | Path]) -> list[Json]:
    """A row for each run, from the last row of its metrics. Unknown values are `None`."""
    return [table_row(run) for run in read_runs(runs)]


def table_row(run: StoredRun) -> Json:
    """The row of a run."""
    penalized = run.regularizer.get("name", "none") != "none"
    settings = {
        "run": run.name,
        "task": run.config.get("task"),
        "regularizer": run.regularizer.get("name"),
        "weight": _weight(run) if penalized else None,
        "quadrature": run.regularizer.get("quadrature") if penalized else None,
        "state": run.state if run.state not in ("", "finished") else None,
        "seed": run.seed,
    }
    return settings | {c.key: run.value(c.key) for c in COLUMNS if c.key not in settings}


def _weight(run: StoredRun) -> object:
    """The weight of the settings, or the last one if it follows measurements."""
    if "control" not in run.last or (last := run.value("weight")) is None:
        return run.regularizer.get("weight")
    return float(f"{last:.3g}")


def used_columns(rows: Sequence[Json]) -> list[Column]:
    """The columns with known values; the task only if there are several."""
    tasks = {row["task"] for row in rows} - {None}
    return [
        column
        for column in COLUMNS
        if any(row[column.key] is not None for row in rows)
        and (column.key != "task" or len(tasks) > 1)
    ]


def show(column: Column, row: Json) -> str:
    """A value of the table as text."""
    value = row[column.key]
    return MISSING if value is None else column.show(value)


def as_json(rows: Sequence[Json]) -> str:
    """The table as JSON."""
    return json.dumps(list(rows), indent=2, allow_nan=False)


# The columns that fit on a narrow terminal.
WIDE = 160
MOST_IMPORTANT = ("run", "weight", "test_error", "test_loss", "test_nfe", "train_seconds")


def as_rich(rows: Sequence[Json], *, width: int | None = None) -> Any:
    """The table for a terminal, a `rich.table.Table`, with the columns that fit."""
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold", row_styles=("", "dim") if len(rows) > 8 else ())
    columns = used_columns(rows)
    if width is not None and width < WIDE:
        columns = [column for column in columns if column.key in MOST_IMPORTANT]
    for column in columns:
        table.add_column(column.title, justify="left" if column.is_text else "right")
    for row in rows:
        # Square brackets in a `Text` are no markup.
        table.add_row(*(Text(show(column, row)) for column in columns))
    return table
