"""What the paper's tables have in common: regularizers, each trained on several grids."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import EvaluationConfig, Job
from ..training.config import from_dict, RegularizerConfig, SolveConfig, TrainConfig
from .arms import is_usable
from .chart import Chart, Line, Panel
from .statistics import mean_ratio, spread
from .study import AbstractStudy, Claim, verdict


COLUMNS = {
    "seconds": "train_seconds",
    "loss": "test_loss",
    "NFE": "test_nfe",
    "R_2": "r2",
    "B": "jacobian",
    "K": "kinetic",
}


class AbstractTable(AbstractStudy):
    """A row for each regularizer and grid; the models are always evaluated with adaptive steps.

    - `task`: by name.
    - `arms`: regularizers by the name of a row.
    - `rows`: which arms are trained on which number of RK4 steps, none for adaptive steps.
    - `smoke_grids`: the rows of these steps are enough at `smoke`.
    - `unit`: of the loss.
    - `columns`: what they are called, and under which names the numbers are in a result.
    """

    task: ClassVar[str]
    arms: ClassVar[dict[str, RegularizerConfig]]
    rows: ClassVar[Sequence[tuple[str, int | None]]]
    smoke_grids: ClassVar[Sequence[int | None]]
    unit: ClassVar[str]
    columns: ClassVar[dict[str, str]] = COLUMNS

    def rows_at(self, scale: str) -> list[tuple[str, int | None]]:
        """Those that are done at a scale."""
        if scale != "smoke":
            return list(self.rows)
        return [(arm, steps) for arm, steps in self.rows if steps in self.smoke_grids]

    def defaults(self, scale: str) -> TrainConfig:
        """The settings of the task, which all rows share."""
        from ..tasks import find_task

        return find_task(self.task).defaults(scale)

    def evaluations(self, scale: str) -> tuple[EvaluationConfig, ...]:
        """Further ones, besides that of the task; none by default."""
        del scale
        return ()

    def measurements(self, arm: RegularizerConfig, seed: int) -> tuple[str, ...]:
        """Whatever else is measured of a run; nothing by default."""
        del arm, seed
        return ()

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """All rows, a seed at a time, so that an interrupted study has whole ones."""
        defaults = self.defaults(scale)
        return [
            Job(
                dataclasses.replace(
                    defaults,
                    regularizer=self.arms[arm],
                    training=_on_grid(defaults.training, steps),
                    seed=seed,
                ),
                self.evaluations(scale),
                self.measurements(self.arms[arm], seed),
            )
            for seed in seeds
            for arm, steps in self.rows_at(scale)
        ]

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """All columns of all rows, over seeds; runs that failed are counted."""
        rows = []
        for arm, steps in self.rows_at(scale):
            same = [result for result in results if self._is_of(result, arm, steps)]
            done = [result for result in same if is_usable(result)]
            row: dict[str, Any] = {"model": arm, "steps": steps, "failed": len(same) - len(done)}
            for column, name in self.columns.items():
                row[column] = [result["row"][name] for result in done]
            row["unsolved"] = [float(result["row"].get("test_num_failed", 0)) for result in done]
            for evaluation in self.evaluations(scale):
                row[f"NFE {evaluation.name}"] = [
                    result["evaluations"][evaluation.name]["test_nfe"] for result in done
                ]
            row["messages"] = [result["message"] for result in same if result not in done]
            rows.append(row)
        return {"rows": rows, "unit": self.unit}

    def _is_of(self, result: dict[str, Any], arm: str, steps: int | None) -> bool:
        config = result["config"]
        regularizer = from_dict(RegularizerConfig, config["regularizer"])
        return regularizer == self.arms[arm] and config["training"]["steps"] == steps

    def table(self, numbers: dict[str, Any]) -> list[dict[str, str]]:
        """The rows, as one reads them."""
        shown = []
        all_solved = not any(any(row["unsolved"]) for row in numbers["rows"])
        for row in numbers["rows"]:
            cells = {"model": row["model"], "steps": _word(row["steps"])}
            for column, values in row.items():
                if isinstance(values, list) and column != "messages":
                    cells[column] = spread(values) if values else "-"
            if all_solved:
                del cells["unsolved"]
            if row["failed"]:
                cells["loss"] = f"{row['failed']} failed; {cells['loss']}"
            shown.append(cells)
        return shown

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """The rows from above to below, a panel for each of the main columns."""
        rows = numbers["rows"]
        colors = {arm: i for i, arm in enumerate(dict.fromkeys(arm for arm, _ in self.rows))}
        names = [f"{row['model']}, {_word(row['steps'])}" for row in rows]
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
            marks = [
                Line(row[name], [i] * len(row[name]), color=colors[row["model"]], joined=False)
                for i, row in enumerate(rows)
            ]
            panels.append(Panel(marks, title, rows=names, from_zero=name == "seconds"))
        return Chart(panels, share_y=True, height=1.2 + 0.28 * len(rows))


def column(numbers: dict[str, Any], arm: str, steps: int | None, name: str) -> list[float]:
    """The numbers of a column in a row, over seeds."""
    for row in numbers["rows"]:
        if row["model"] == arm and row["steps"] == steps:
            return row[name]
    raise KeyError(f"There is no row {arm!r} with {steps} steps.")


def time_claims(numbers: dict[str, Any], steps: int, factor: float, hours: str) -> list[Claim]:
    """How long R_2 trains next to RNODE on equal grids, with both ways of integrating it.

    - `steps`: of the grid.
    - `factor`, `hours`: what the paper has.
    """

    def of_time(arm: str) -> float:
        above, below = (column(numbers, name, steps, "seconds") for name in (arm, "RNODE"))
        return mean_ratio(above, below)

    augmented, sampled = of_time("R_2, Augmented"), of_time("R_2")
    return [
        Claim(
            f"R_2 takes about {factor:g} times as long to train as RNODE, at equal steps",
            hours,
            f"{augmented:.2f} times with Augmented, as in the paper, on {steps} steps",
            verdict(augmented > (1 + factor) / 2, augmented),
        ),
        Claim(
            "With Sampled, it takes as long as RNODE",
            "not in the paper",
            f"{sampled:.2f} times, on {steps} steps",
            verdict(sampled <= 1.1, sampled),
        ),
    ]


def _on_grid(solve: SolveConfig, steps: int | None) -> SolveConfig:
    if steps is None:
        return dataclasses.replace(solve, solver="dopri5", steps=None)
    return dataclasses.replace(solve, solver="rk4", steps=steps)


def _word(steps: int | None) -> str:
    return "adaptive" if steps is None else f"{steps} steps"
