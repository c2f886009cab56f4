"""What the paper's tables have in common: regularizers, each trained on several grids."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from ..config import from_dict, RegularizerConfig, SolveConfig, TrainConfig
from ..sweep.plan import EvaluationConfig, Job
from .arms import is_usable, num_unsolved
from .chart import Chart, Line, Panel
from .r2_sweep import TIGHT
from .statistics import spread
from .study import AbstractStudy, Claim, seeds_agree, verdict


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
    - `smoke_rows`: those that are enough at `smoke`.
    - `unit`: of the loss.
    - `beside`: a further evaluation of all runs, but for `smoke`.
    - `columns`: what they are called, and under which names the numbers are in a result.
    """

    task: ClassVar[str]
    arms: ClassVar[dict[str, RegularizerConfig]]
    rows: ClassVar[Sequence[tuple[str, int | None]]]
    smoke_rows: ClassVar[Sequence[tuple[str, int | None]]]
    unit: ClassVar[str]
    beside: ClassVar[EvaluationConfig | None] = None
    columns: ClassVar[dict[str, str]] = COLUMNS

    def rows_at(self, scale: str) -> list[tuple[str, int | None]]:
        """Those that are done at a scale."""
        return list(self.smoke_rows if scale == "smoke" else self.rows)

    def defaults(self, scale: str) -> TrainConfig:
        """The settings of the task, which all rows share."""
        from ..tasks.base import find_task

        return find_task(self.task).defaults(scale)

    def evaluations(self, scale: str, steps: int | None) -> tuple[EvaluationConfig, ...]:
        """Further ones of the runs on a grid, besides that of the task."""
        del steps
        return () if scale == "smoke" or self.beside is None else (self.beside,)

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
                self.evaluations(scale, steps),
                self.measurements(self.arms[arm], seed),
            )
            for seed in seeds
            for arm, steps in self.rows_at(scale)
        ]

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """All columns of all rows, over seeds; runs that failed are counted.

        Rows that are not done at a scale are empty, and not shown.
        """
        rows = []
        further = [
            x.name for _, steps in self.rows_at(scale) for x in self.evaluations(scale, steps)
        ]
        for arm, steps in self.rows:
            same = [result for result in results if self._is_of(result, arm, steps)]
            done = [result for result in same if is_usable(result)]
            row: dict[str, Any] = {"model": arm, "steps": steps, "failed": len(same) - len(done)}
            row["seeds"] = [result["config"]["seed"] for result in done]
            for column, name in self.columns.items():
                row[column] = [result["row"][name] for result in done]
            row["unsolved"] = [float(num_unsolved(result)) for result in done]
            for name in dict.fromkeys(further):
                known = [x["evaluations"].get(name) for x in done]
                row[f"NFE {name}"] = [x["test_nfe"] for x in known if x is not None]
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
        rows = _done(numbers)
        all_solved = not any(any(row["unsolved"]) for row in rows)
        for row in rows:
            cells = {"model": row["model"], "steps": _word(row["steps"])}
            for column, values in row.items():
                if isinstance(values, list) and column not in ("messages", "seeds"):
                    cells[column] = spread(values) if values else "-"
            if all_solved:
                del cells["unsolved"]
            if row["failed"]:
                cells["loss"] = f"{row['failed']} failed; {cells['loss']}"
            shown.append(cells)
        return shown

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """The rows from above to below, a panel for each of the main columns."""
        rows = _done(numbers)
        # One for each regularizer, whatever its weight and the way it is integrated.
        kinds = dict.fromkeys(_kind(arm) for arm, _ in self.rows)
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
            marks = [
                Line(
                    row[name], [i] * len(row[name]), color=colors[_kind(row["model"])], joined=False
                )
                for i, row in enumerate(rows)
            ]
            panels.append(Panel(marks, title, rows=names, from_zero=name == "seconds"))
        return Chart(panels, share_y=True, height=1.2 + 0.28 * len(rows))


def column(numbers: dict[str, Any], arm: str, steps: int | None, name: str) -> dict[int, float]:
    """The numbers of a column in a row, by seed; without evaluations of solves that gave up."""
    for row in numbers["rows"]:
        if row["model"] == arm and row["steps"] == steps:
            known = dict(zip(row["seeds"], row[name], strict=True))
            unsolved = dict(zip(row["seeds"], row["unsolved"], strict=True))
            is_count = name.startswith("NFE")
            return {seed: x for seed, x in known.items() if not (is_count and unsolved[seed])}
    raise KeyError(f"There is no row {arm!r} with {steps} steps.")


def _done(numbers: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in numbers["rows"] if row["seeds"] or row["failed"]]


def count_in(numbers: dict[str, Any]) -> str:
    """The column of evaluations at the paper's tolerance, if there is one."""
    tight = f"NFE {TIGHT.name}"
    return tight if tight in numbers["rows"][0] else "NFE"


def ratios(
    numbers: dict[str, Any],
    name: str,
    arm: str,
    other: str = "unregularized",
    *,
    steps: int | None = None,
) -> list[float]:
    """Those of a column in two rows on the same grid, for each seed that both have."""
    above, below = (column(numbers, each, steps, name) for each in (arm, other))
    return [above[seed] / below[seed] for seed in above if seed in below]


def time_claims(numbers: dict[str, Any], steps: int, factor: float, hours: str) -> list[Claim]:
    """How long R_2 trains next to RNODE on equal grids, both integrated in the same way.

    - `steps`: of the grid.
    - `factor`, `hours`: what the paper has.
    """
    augmented = ratios(numbers, "seconds", "R_2, Augmented", "RNODE, Augmented", steps=steps)
    sampled = ratios(numbers, "seconds", "R_2", "RNODE", steps=steps)
    # By as much as the paper's own times differ from its factor, from task to task.
    bounds = {"at_least": 0.8 * factor, "at_most": 1.25 * factor}
    return [
        Claim(
            f"R_2 takes about {factor:g} times as long to train as RNODE, at equal steps",
            hours,
            f"{spread(augmented)} times with Augmented, as in the paper, on {steps} steps",
            verdict(seeds_agree(augmented, **bounds)),
            rule=f"{bounds['at_least']:.2g} to {bounds['at_most']:.2g} times",
        ),
        Claim(
            "With Sampled, it takes as long as RNODE",
            "",
            f"{spread(sampled)} times, on {steps} steps",
            verdict(seeds_agree(sampled, at_most=1.1)),
            rule="at most 1.1 times",
            is_ours=True,
        ),
    ]


def _kind(arm: str) -> str:
    return arm.partition(",")[0]


def _on_grid(solve: SolveConfig, steps: int | None) -> SolveConfig:
    if steps is None:
        return dataclasses.replace(solve, solver="dopri5", steps=None)
    return dataclasses.replace(solve, solver="rk4", steps=steps)


def _word(steps: int | None) -> str:
    return "adaptive" if steps is None else f"{steps} steps"
