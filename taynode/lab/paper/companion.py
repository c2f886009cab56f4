"""The companion of the paper: one page with all studies that are done."""

import json
import math
import warnings
from pathlib import Path
from typing import Any

from ..config import ConfigError
from ..report.figures import Figure
from ..report.rendering import as_script, render_page
from .chart import Chart
from .effort import in_words
from .screen import figures_of
from .study import AbstractStudy, find_study, Numbers, Record, STUDIES
from .verdicts import by_chance, RULE, VERDICTS


PARTS = {"study", "title", "scale", "seeds", "claims", "table", "data", "numbers"}


def write_companion(root: Path, out: Path) -> Path:
    """Write the page about the studies in a directory, and return its path."""
    studies = [record for name in STUDIES if (record := read_study(root / f"{name}.json"))]
    if not studies:
        raise ConfigError(
            f"{root} has no studies; do some with `taynode paper run NAME --out {root.parent}`."
        )
    figures: dict[str, Figure] = {}
    shown = [_shown(record, figures) for record in studies]
    claims = [(study["name"], claim) for study in shown for _, claim in study["claims"]]
    papers = [claim for _, claim in claims if not claim.get("is_ours")]
    holds, fails, _ = (sum(x["verdict"] == word for x in papers) for word in VERDICTS)
    content = {
        "title": "The paper, reproduced",
        "headline": headline(len(papers), holds, fails),
        "scale": ", ".join(dict.fromkeys(record["scale"] for record in studies)),
        "rule": RULE,
        "by_chance": by_chance([claim for _, claim in claims]),
        "claims": claims,
        "studies": shown,
        "figures": as_script(figures),
    }
    return render_page("companion.html.j2", content, out)


def headline(count: int, holds: int, fails: int) -> str:
    """A sentence on the numbers of claims that hold and that do not."""
    claims = f"claim{'s' if count != 1 else ''} of the paper hold{'s' if holds == 1 else ''}"
    return f"{holds} of {count} {claims}, {fails} {'does' if fails == 1 else 'do'} not"


def read_study(file: Path) -> Record | None:
    """The record that `run_studies` wrote; `None` if it is missing or cannot be read."""
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_text())
        if PARTS <= record.keys():
            return record
        problem = f"it lacks {', '.join(sorted(PARTS - record.keys()))}"
    except (ValueError, AttributeError) as error:
        problem = str(error)
    warnings.warn(f"{file} is left out: {problem}. Do the study again.", stacklevel=2)
    return None


def _shown(record: Record, figures: dict[str, Figure]) -> Record:
    """The part of the page on a study. Adds the figures of the study to `figures`."""
    study = find_study(record["study"])
    panels, shades = [], ""
    if (chart := _chart(study, record["numbers"])) is not None:
        shades = chart.values
        for i, (panel, figure) in enumerate(zip(chart.panels, figures_of(chart), strict=True)):
            key = f"{study.name}-{i}"
            figures[key] = _finite(figure)
            # Titles have two lines in print only.
            title = (panel.title or panel.y).replace("\n", ", ")
            panels.append({"key": key, "title": title})
    return {
        "name": study.name,
        "title": study.title,
        "scale": record["scale"],
        "seeds": seeds_in_words(record),
        "panels": panels,
        "shades": shades,
        "data": record["data"],
        "remarks": record.get("remarks", []),
        "effort": in_words(record.get("effort")),
        "table": record["table"],
        "claims": [(study.name, claim) for claim in record["claims"]],
        "command": command_of(record),
    }


def _chart(study: AbstractStudy, numbers: Numbers | None) -> Chart | None:
    """The chart; `None` without numbers, or if an earlier version wrote them differently."""
    if numbers is None:
        return None
    try:
        return study.chart(numbers)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        problem = f"{type(error).__name__}: {error}"
        warnings.warn(
            f"{study.name} cannot be drawn ({problem}). Do the study again.", stacklevel=2
        )
        return None


def seeds_in_words(record: Record) -> str:
    """The number of seeds, as the end of a sentence; empty if there are none."""
    count = len(record["seeds"])
    return f", {count} seed{'s' if count != 1 else ''}" if count else ""


def command_of(record: Record) -> str:
    """The command that does a study again, elsewhere: results that are there are used."""
    seeds = f" --seeds {len(record['seeds'])}" if record["seeds"] else ""
    return f"taynode paper run {record['study']} --scale {record['scale']}{seeds} --out again"


def _finite(value: Any) -> Any:
    """A value of JSON with `None` for numbers that are not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(x) for key, x in value.items()}
    return [_finite(x) for x in value] if isinstance(value, list | tuple) else value
