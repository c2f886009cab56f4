"""The page about some runs: one HTML file that needs nothing else."""

import base64
import functools
import gzip
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..training.config import ConfigError
from . import palette
from .cards import make_cards
from .command import reproduce
from .densities import density_panels
from .figures import describe, metric_figure, nfe_figure, tradeoff_figure
from .formats import setting
from .groups import flatten, Group, group_runs
from .headline import headlines
from .histograms import histogram_figures
from .runs import read_runs, Run
from .series_figures import series_panels
from .table import MISSING, show, table_rows, used_columns
from .trajectories import draw_paths, Panels


TEMPLATES = Path(__file__).parent / "templates"


def write_report(runs: Sequence[str | Path], out: str | Path) -> Path:
    """Write the page about some runs, and return where it is.

    It shows whatever the runs have, and says what they lack.

    **Arguments:**

    - `runs`: their directories. Runs that differ in their seed alone are taken together.
    - `out`: the file; its directory is made if need be.
    """
    try:
        import jinja2
        import markupsafe
        import plotly.offline
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"The page needs {error.name}: run `pip install 'taynode[report]'`."
        ) from None

    def with_index(text: Any) -> Any:
        """Escaped text, with `R_2` as it is printed."""
        safe = str(markupsafe.escape(text))
        return markupsafe.Markup(re.sub(r"\bR_(\d)", r"R<sub>\1</sub>", safe))

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["with_index"] = with_index
    text = environment.get_template("report.html.j2").render(
        **_content(read_runs(runs)),
        light=markupsafe.Markup(palette.variables(palette.LIGHT)),
        dark=markupsafe.Markup(palette.variables(palette.DARK)),
        library=_packed(plotly.offline.get_plotlyjs()),
    )
    file = Path(out)
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.tmp")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, file)
    return file


@functools.cache
def _packed(library: str) -> str:
    """The drawing library in a third of its size; browsers unpack it."""
    return base64.b64encode(gzip.compress(library.encode(), 9, mtime=0)).decode()


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
        "figures": _as_script(figures),
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


def _as_script(figures: dict[str, Any]) -> Any:
    """Figures as JSON that cannot end the script element it is in."""
    import markupsafe

    text = json.dumps(figures, allow_nan=False, separators=(",", ":"))
    return markupsafe.Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))
