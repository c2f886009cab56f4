"""The page about some runs: one HTML file that needs nothing else."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .cards import make_cards
from .command import reproduce
from .densities import density_panels
from .figures import describe, metric_figure, nfe_figure, tradeoff_figure
from .formats import setting
from .groups import flatten, Group, group_runs
from .headline import headlines
from .histograms import histogram_figures
from .rendering import as_script, render_page
from .runs import read_runs, Run
from .series_figures import series_panels
from .table import MISSING, show, table_rows, used_columns
from .trajectories import draw_paths, Panels


def write_report(runs: Sequence[str | Path], out: str | Path) -> Path:
    """Write the page about some runs, and return where it is.

    It shows whatever the runs have, and says what they lack.

    **Arguments:**

    - `runs`: their directories. Runs that differ in their seed alone are taken together.
    - `out`: the file; its directory is made if need be.
    """
    return render_page("report.html.j2", _content(read_runs(runs)), Path(out))


def _content(runs: list[Run]) -> dict[str, Any]:
    """What the template shows, as plain data."""
    groups = group_runs(runs)
    rows = table_rows(runs)
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
        "title": f"{', '.join(dict.fromkeys(group.task for group in groups))}: "
        + " and ".join(_title(groups)),
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
    """A command in pieces that are not to be broken: a flag and its value."""
    return re.split(r" (?=--)", command) if command else []


def _title(groups: list[Group]) -> list[str]:
    labels = [group.label for group in groups]
    return labels if len(labels) < 4 else [f"{len(labels)} configurations"]


def _settings_of(group: Group) -> dict[str, Any]:
    """The settings of a group, with all its seeds."""
    settings = flatten(group.runs[0].config)
    seeds = {"seed": ", ".join(setting(run.seed) for run in group.runs)}
    return settings | seeds if settings else {}


def _training(groups: list[Group]) -> list[tuple[str, str, str, Any]]:
    """Figures with their names, titles and descriptions."""
    found = [
        (
            "training-nfe",
            "Evaluations per test sample",
            describe(groups, "test_nfe", decimals=1),
            nfe_figure(groups),
        ),
        ("training-loss", "Loss", describe(groups, "test_loss"), metric_figure(groups, "loss")),
        (
            "training-mse",
            "Mean square error",
            describe(groups, "test_mse"),
            metric_figure(groups, "mse"),
        ),
        ("training-error", "Error", describe(groups, "test_error"), metric_figure(groups, "error")),
    ]
    return [entry for entry in found if entry[3] is not None]


def _scale(panels: Panels | None) -> list[tuple[float, str]]:
    """Where the ticks of the color scale are, in percent, and what they say."""
    if panels is None:
        return []
    low, high = panels.low, panels.high
    ticks = [
        (power + digit, f"{10 ** (power + digit):.3g}")
        for power in range(int(low) - 1, int(high) + 2)
        for digit in ((0.0,) if high - low > 2 else (0.0, 0.30103, 0.69897))
    ]
    return [(100 * (t - low) / (high - low), text) for t, text in ticks if low <= t <= high]


def _settings(tables: list[tuple[Group, str, dict[str, Any]]]) -> dict[str, Any]:
    """Settings that differ, with the heads of their columns, and settings that do not."""
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
