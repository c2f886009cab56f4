"""The common part of the tables: regularizers, each trained on several grids."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from ..config import from_dict, RegularizerConfig, SolveConfig, TrainConfig
from ..sweep.plan import EvaluationConfig, Job
from ..sweep.results import Result
from .arms import defaults_of, is_usable
from .chart import Chart, Line, Panel
from .statistics import spread
from .study import AbstractStudy, Numbers
from .table_rows import row_of, runs_in_words, shown


COLUMNS = {
    "seconds": "train_seconds",
    "loss": "test_loss",
    "NFE": "test_nfe",
    "R_2": "r2",
    "B": "jacobian",
    "K": "kinetic",
}
# The evaluations of all training steps, which runs of version 0.1.0 did not count.
TRAINING_NFE = "training_nfe"
# Parts of a row that are no columns of the table.
HIDDEN = ("messages", "seeds", "failed_seeds", "unsolved", "busy", "machines", "remarks", "course")
Rows: TypeAlias = Sequence[tuple[str, int | None]]


class AbstractTable(AbstractStudy):
    """A row for each regularizer and grid; the models are always evaluated with adaptive steps.

    - `task`: the name of the task.
    - `arms`: regularizers by the name of a row.
    - `rows`: the name of an arm and its number of RK4 steps in training, `None` for adaptive steps.
    - `smoke_rows`: the rows at `smoke`.
    - `unit`: the unit of the loss.
    - `beside`: a further evaluation of all runs, except at `smoke`.
    - `columns`: the names of the columns, and the names of the same numbers in a result.
    - `needs`: those of the latter that runs of earlier versions may lack.
    """

    task: str
    arms: Mapping[str, RegularizerConfig]
    rows: Rows
    smoke_rows: Rows
    unit: str
    beside: EvaluationConfig | None = None
    columns: Mapping[str, str] = COLUMNS
    needs: tuple[str, ...] = ()

    def rows_at(self, scale: str) -> Rows:
        """The rows at a scale."""
        return self.smoke_rows if scale == "smoke" else self.rows

    def defaults(self, scale: str) -> TrainConfig:
        """The settings of the task, which all rows share."""
        return defaults_of(self.task, scale)

    def evaluations(self, scale: str, steps: int | None) -> tuple[EvaluationConfig, ...]:
        """Further evaluations of the runs on a grid, besides that of the task."""
        del steps
        return () if scale == "smoke" or self.beside is None else (self.beside,)

    def measurements(self, arm: RegularizerConfig, seed: int) -> tuple[str, ...]:
        """The names of further measurements of a run; none by default."""
        del arm, seed
        return ()

    def config_of(self, defaults: TrainConfig, arm: str, steps: int | None) -> TrainConfig:
        """The settings of a row."""
        training = _on_grid(defaults.training, steps)
        return dataclasses.replace(defaults, regularizer=self.arms[arm], training=training)

    def row_key(self, config: TrainConfig) -> Hashable:
        """The settings in which rows differ."""
        return config.regularizer, config.training.steps

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """All rows, a seed at a time, so that an interrupted study has whole seeds."""
        defaults = self.defaults(scale)
        return [
            Job(
                dataclasses.replace(self.config_of(defaults, arm, steps), seed=seed),
                self.evaluations(scale, steps),
                self.measurements(self.arms[arm], seed),
                self.needs,
            )
            for seed in seeds
            for arm, steps in self.rows_at(scale)
        ]

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """All columns of all rows, over seeds, with the notes on their runs.

        Runs that failed are counted. Rows that are not done at a scale are empty and not shown.
        """
        every = [x for _, steps in self.rows_at(scale) for x in self.evaluations(scale, steps)]
        further = list(dict.fromkeys(evaluation.name for evaluation in every))
        groups: dict[Hashable, list[Result]] = {}
        for result in results:
            key = self.row_key(from_dict(TrainConfig, result["config"]))
            groups.setdefault(key, []).append(result)
        rows, defaults = [], self.defaults(scale)
        for arm, steps in self.rows:
            found = groups.get(self.row_key(self.config_of(defaults, arm, steps)), [])
            row = row_of(found, self.columns, further)
            more = self.more_columns([result for result in found if is_usable(result)])
            rows.append({"model": arm, "steps": steps, **row, **more})
        return {"rows": rows, "unit": self.unit}

    def more_columns(self, results: Sequence[Result]) -> Numbers:
        """Further columns of a row, from runs that succeeded; none by default."""
        del results
        return {}

    def table(self, numbers: Numbers) -> list[dict[str, str]]:
        """The rows for readers, with the number of failed runs."""
        lines, rows = [], _rows_with_runs(numbers)
        shared = set.intersection(*(set(found) for row in rows for found in row["remarks"] or [[]]))
        for row in rows:
            cells = {"model": row["model"], "steps": _word(row["steps"])}
            cells["runs"] = runs_in_words(row, shared)
            for column in row:
                if isinstance(row[column], list) and column not in HIDDEN:
                    values = shown(row, column)
                    cells[column] = spread(values) if values else "-"
            lines.append(cells)
        return lines

    def chart(self, numbers: Numbers) -> Chart:
        """The rows from top to bottom, a panel for each of the main columns."""
        rows = _rows_with_runs(numbers)
        # One color for each regularizer, whatever its weight and quadrature.
        kinds = dict.fromkeys(_kind(row["model"]) for row in numbers["rows"])
        colors = {kind: i for i, kind in enumerate(kinds)}
        grids = {row["steps"] for row in rows}
        names = [
            f"{row['model']}, {_word(row['steps'])}" if len(grids) > 1 else row["model"]
            for row in rows
        ]
        names = [
            f"{name} (failed)" if not row["NFE"] else name
            for name, row in zip(names, rows, strict=True)
        ]
        titles = {
            "loss": f"test loss, {numbers['unit']}",
            "NFE": "NFE per sample",
            "seconds": "training, s",
        }
        panels = []
        for name, title in titles.items():
            found = [shown(row, name) for row in rows]
            if not any(found):
                continue
            marks = [
                Line(values, [i] * len(values), color=colors[_kind(row["model"])], joined=False)
                for i, (row, values) in enumerate(zip(rows, found, strict=True))
            ]
            panels.append(Panel(marks, title, rows=names, from_zero=name == "seconds"))
        return Chart(panels, share_y=True, height=1.2 + 0.28 * len(rows))


def _rows_with_runs(numbers: Numbers) -> list[Numbers]:
    return [row for row in numbers["rows"] if row["seeds"] or row["failed"]]


def _kind(arm: str) -> str:
    return arm.partition(",")[0]


def _on_grid(solve: SolveConfig, steps: int | None) -> SolveConfig:
    solver = "dopri5" if steps is None else "rk4"
    return dataclasses.replace(solve, solver=solver, steps=steps)


def _word(steps: int | None) -> str:
    return "adaptive" if steps is None else f"{steps} steps"
