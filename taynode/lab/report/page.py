"""The page about some runs: a single HTML file."""

import re
from collections.abc import Sequence
from pathlib import Path

from ..files import Json
from .cards import make_cards
from .command import reproduce
from .control_figures import budget_line, weight_figure
from .densities import density_panels
from .figures import clock, describe, Figure, metric_figure, nfe_figure, tradeoff_figure
from .formats import setting
from .groups import flatten, Group, group_runs
from .headline import headlines
from .histograms import histogram_figures
from .rendering import as_script, render_page
from .runs import read_runs, StoredRun
from .series_figures import series_panels
from .table import MISSING, show, table_row, used_columns
from .trajectories import draw_paths, Panels


def write_report(runs: Sequence[str | Path], out: str | Path) -> Path:
    """Write the page about some runs, and return its path.

    The page shows all that the runs have, and names what they lack.

    **Arguments:**

    - `runs`: the directories of the runs. Runs that differ only in their seed form a group.
    - `out`: the file; its directory is made if it is missing.
    """
    return render_page("report.html.j2", _content(read_runs(runs)), Path(out))


def _content(runs: list[StoredRun]) -> Json:
    """The content of the template."""
    groups = group_runs(runs)
    few = len(groups) < 4
    names = " and ".join(x.label for x in groups) if few else f"{len(groups)} configurations"
    rows = [table_row(run) for run in runs]
    columns = used_columns(rows)
    panels = draw_paths(groups)
    densities, series = density_panels(groups), series_panels(groups)
    training = _training(groups)
    histograms = histogram_figures(groups)
    homes = {run.name: group for group in groups for run in group.runs}
    tradeoff = tradeoff_figure(groups)
    figures = {key: figure for key, _, _, figure in training}
    figures |= {"tradeoff": tradeoff} if tradeoff else {}
    figures |= {f"nfe-{split}": figure for split, figure in histograms.items()}
    figures |= {
        f"paths-{i}": figure for i, (_, figure) in enumerate(panels.figures if panels else [])
    }
    figures |= {f"density-{i}": figure for i, (_, _, figure) in enumerate(densities)}
    figures |= {f"series-{i}": figure for i, (_, _, figure) in enumerate(series)}
    return {
        "title": f"{', '.join(dict.fromkeys(group.task for group in groups))}: {names}",
        "headlines": headlines(groups),
        "groups": groups,
        "num_runs": len(runs),
        "several_seeds": any(len(group.runs) > 1 for group in groups),
        "cards": make_cards(groups),
        "notes": [(run.name, run.notes) for run in runs if run.notes],
        "columns": columns,
        "rows": [
            (
                homes[row["run"]],
                [(column, row[column.key], show(column, row)) for column in columns],
            )
            for row in rows
        ],
        "has_tradeoff": tradeoff is not None,
        "has_budget": any(group.runs[0].regularizer.get("budget") for group in groups),
        "training": training,
        "panels": panels,
        "scale": _scale(panels),
        "densities": densities,
        "series": series,
        "histograms": list(histograms),
        "settings": _settings([(g, g.title, _settings_of(g)) for g in groups]),
        "machines": _settings([(homes[r.name], r.name, flatten(r.environment)) for r in runs]),
        "runs": [(run.name, homes[run.name], _words(reproduce(run.config))) for run in runs],
        "figures": as_script(figures),
    }


def _words(command: str) -> list[str]:
    """A command in pieces without line breaks: each flag with its value."""
    return re.split(r" (?=--)", command) if command else []


def _settings_of(group: Group) -> Json:
    """The settings of a group, with all its seeds."""
    settings = flatten(group.runs[0].config)
    seeds = {"seed": ", ".join(setting(run.seed) for run in group.runs)}
    return settings | seeds if settings else {}


def _training(groups: list[Group]) -> list[tuple[str, str, str, Figure]]:
    """Figures with their names, titles and descriptions."""
    titles = {
        "nfe": "Evaluations per test sample",
        "loss": "Loss",
        "mse": "Mean square error",
        "error": "Error",
        "weight": "Weight that keeps the budget",
    }
    figures = {name: metric_figure(groups, name) for name in ("loss", "mse", "error")}
    figures |= {"nfe": _nfe_figure(groups), "weight": weight_figure(groups)}
    return [
        (f"training-{name}", title, describe(groups, _column(name)), figure)
        for name, title in titles.items()
        if (figure := figures[name]) is not None
    ]


def _column(name: str) -> str:
    return name if name == "weight" else f"test_{name}"


def _nfe_figure(groups: list[Group]) -> Figure | None:
    """Evaluations during training, with the budgets that some groups have."""
    figure, time = nfe_figure(groups), clock(groups)
    for group in groups if figure is not None else ():
        figure["data"] += budget_line(group, group.last(time).mean or 0.0)
    return figure


def _scale(panels: Panels | None) -> list[tuple[float, str]]:
    """The ticks of the color scale: their places in percent, and their labels."""
    if panels is None:
        return []
    low, high = panels.low, panels.high
    ticks = [
        (power + digit, f"{10 ** (power + digit):.3g}")
        for power in range(int(low) - 1, int(high) + 2)
        for digit in ((0.0,) if high - low > 2 else (0.0, 0.30103, 0.69897))
    ]
    return [(100 * (t - low) / (high - low), text) for t, text in ticks if low <= t <= high]


def _settings(tables: list[tuple[Group, str, Json]]) -> Json:
    """The settings that differ, with the heads of their columns, and those that do not."""
    known = [entry for entry in tables if entry[2]]
    names = {name: None for _, _, table in known for name in table}
    rows = [
        (name, [setting(t[name]) if name in t else MISSING for _, _, t in known]) for name in names
    ]
    return {
        "heads": [(group, title) for group, title, _ in known],
        "different": [row for row in rows if len(set(row[1])) > 1],
        "same": [row for row in rows if len(set(row[1])) == 1],
    }
