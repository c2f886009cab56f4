"""What the paper's tables have in common: regularizers, each trained on several grids."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from ..config import from_dict, RegularizerConfig, SolveConfig, TrainConfig
from ..sweep.plan import EvaluationConfig, Job
from .arms import is_usable, num_unsolved
from .chart import Chart, Line, Panel
from .notes import note_on
from .r2_sweep import TIGHT
from .statistics import spread
from .study import AbstractStudy, Claim, judged
from .verdicts import ratio


COLUMNS = {
    "seconds": "train_seconds",
    "loss": "test_loss",
    "NFE": "test_nfe",
    "R_2": "r2",
    "B": "jacobian",
    "K": "kinetic",
}
# Of a row, what is not a column of the table by itself.
HIDDEN = ("messages", "seeds", "failed_seeds", "unsolved", "busy", "machines", "remarks")


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
        from ..tasks.names import find_task

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
        """All columns of all rows, over seeds, with the notes on their runs.

        Runs that failed are counted. Rows that are not done at a scale are empty and not shown.
        """
        rows = []
        further = [
            x.name for _, steps in self.rows_at(scale) for x in self.evaluations(scale, steps)
        ]
        for arm, steps in self.rows:
            same = [result for result in results if self._is_of(result, arm, steps)]
            done = [result for result in same if is_usable(result)]
            failed = [result for result in same if result not in done]
            row: dict[str, Any] = {"model": arm, "steps": steps, "failed": len(failed)}
            row["failed_seeds"] = [result["config"]["seed"] for result in failed]
            row["seeds"] = [result["config"]["seed"] for result in done]
            for column, name in self.columns.items():
                row[column] = [result["row"][name] for result in done]
            row["unsolved"] = [float(num_unsolved(result)) for result in done]
            for name in dict.fromkeys(further):
                known = [x["evaluations"].get(name) for x in done]
                row[f"NFE {name}"] = [x["test_nfe"] for x in known if x is not None]
            row["messages"] = [result["message"] for result in failed]
            notes = [note_on(result) for result in done]
            row["busy"] = [note.busy for note in notes]
            row["machines"] = [note.machine for note in notes]
            row["remarks"] = [list(note.remarks) for note in notes]
            rows.append(row)
        return {"rows": rows, "unit": self.unit}

    def _is_of(self, result: dict[str, Any], arm: str, steps: int | None) -> bool:
        config = result["config"]
        regularizer = from_dict(RegularizerConfig, config["regularizer"])
        return regularizer == self.arms[arm] and config["training"]["steps"] == steps

    def table(self, numbers: dict[str, Any]) -> list[dict[str, str]]:
        """The rows as they are read, with what became of their runs."""
        shown, rows = [], _done(numbers)
        shared = set.intersection(*(set(found) for row in rows for found in row["remarks"] or [[]]))
        for row in rows:
            cells = {"model": row["model"], "steps": _word(row["steps"])}
            cells["runs"] = _runs_in_words(row, shared)
            for column, values in row.items():
                if isinstance(values, list) and column not in HIDDEN:
                    cells[column] = spread(values) if values else "-"
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
    """The numbers of a column in a row, by seed.

    Evaluations of runs with unsolved samples are left out, and so are times of busy machines.
    """
    row = _row(numbers, arm, steps)
    left_out = "unsolved" if name.startswith("NFE") else "busy" if name == "seconds" else ""
    spoiled = row[left_out] if left_out else [False] * len(row["seeds"])
    both = zip(row["seeds"], row[name], spoiled, strict=True)
    return {seed: value for seed, value, is_spoiled in both if not is_spoiled}


def _row(numbers: dict[str, Any], arm: str, steps: int | None) -> dict[str, Any]:
    for row in numbers["rows"]:
        if row["model"] == arm and row["steps"] == steps:
            return row
    raise KeyError(f"There is no row {arm!r} with {steps} steps.")


def _runs_in_words(row: dict[str, Any], shared: set[str]) -> str:
    """How many runs a row has, how many of them failed, and what is noted on them.

    The remarks themselves are among those on the study; a row only points to its own.
    """
    total = len(row["seeds"]) + row["failed"]
    words = [f"{row['failed']} of {total} failed" if row["failed"] else str(total)]
    if unsolved := sum(map(bool, row["unsolved"])):
        words.append(f"{unsolved} with unsolved samples")
    if busy := sum(row["busy"]):
        words.append(f"{busy} not timed on a quiet machine")
    for machine, count in Counter(filter(None, row["machines"])).items():
        words.append(f"{count} timed on {machine}")
    own = {remark for found in row["remarks"] for remark in found} - shared
    return "; ".join([*words, *(["see the remarks"] if own else [])])


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
    """The numbers of a row over those of another on the same grid, for each seed that both have."""
    return row_ratios(numbers, name, (arm, steps), (other, steps))


def row_ratios(
    numbers: dict[str, Any],
    name: str,
    above: tuple[str, int | None],
    below: tuple[str, int | None],
) -> list[float]:
    """The numbers of a row over those of another, for each seed that both have.

    Times are compared only if both were measured on the same machine.
    """
    a, b = (column(numbers, *row, name) for row in (above, below))
    seeds = [seed for seed in a if seed in b]
    if name == "seconds":
        rows = [_row(numbers, *row) for row in (above, below)]
        on = [dict(zip(row["seeds"], row["machines"], strict=True)) for row in rows]
        seeds = [seed for seed in seeds if on[0][seed] == on[1][seed]]
    return [a[seed] / b[seed] for seed in seeds]


def time_in_words(numbers: dict[str, Any], arm: str) -> str:
    """The training time of a row relative to the unregularized one, as the end of a sentence."""
    found = ratios(numbers, "seconds", arm)
    return f", in {spread(found)} of the training time" if found else ", times not comparable"


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
        judged(
            f"R_2 takes about {factor:g} times as long to train as RNODE, at equal steps",
            hours,
            f"{times_in_words(augmented)} with Augmented, as in the paper, on {steps} steps",
            ratio("time of R_2 over RNODE", augmented, **bounds),
            rule=f"{bounds['at_least']:.2g} to {bounds['at_most']:.2g} times",
        ),
        judged(
            "With Sampled, it takes as long as RNODE",
            "",
            f"{times_in_words(sampled)}, on {steps} steps",
            ratio("time of R_2 over RNODE", sampled, at_most=1.1),
            rule="at most 1.1 times",
            is_ours=True,
        ),
    ]


def times_in_words(found: Sequence[float]) -> str:
    """How many times as long something takes, and of how many seeds this is known."""
    many = "" if len(found) == 1 else "s"
    return f"{spread(found)} times ({len(found)} seed{many})" if found else "times not comparable"


def _kind(arm: str) -> str:
    return arm.partition(",")[0]


def _on_grid(solve: SolveConfig, steps: int | None) -> SolveConfig:
    solver = "dopri5" if steps is None else "rk4"
    return dataclasses.replace(solve, solver=solver, steps=steps).for_training()


def _word(steps: int | None) -> str:
    return "adaptive" if steps is None else f"{steps} steps"
