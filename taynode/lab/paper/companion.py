"""The companion of the paper: one page with every study that has been done."""

import json
import math
import warnings
from pathlib import Path
from typing import Any

from ..config import ConfigError
from ..report.rendering import as_script, render_page
from .chart import Chart
from .effort import in_words
from .screen import figures_of
from .study import AbstractStudy, find_study, STUDIES
from .verdicts import by_chance, RULE, VERDICTS


PARTS = {"study", "title", "scale", "seeds", "claims", "table", "data", "numbers"}


def write_companion(root: Path, out: Path) -> Path:
    """Write the page about the studies in a directory, and return where it is."""
    studies = [told for name in STUDIES if (told := read_study(root / f"{name}.json"))]
    if not studies:
        raise ConfigError(
            f"{root} has no studies; do some with `taynode paper run NAME --out {root.parent}`."
        )
    figures: dict[str, Any] = {}
    shown = [_shown(told, figures) for told in studies]
    claims = [(study["name"], claim) for study in shown for _, claim in study["claims"]]
    papers = [claim for _, claim in claims if not claim.get("is_ours")]
    holds, fails, _ = (sum(x["verdict"] == word for x in papers) for word in VERDICTS)
    content = {
        "title": "The paper, reproduced",
        "headline": headline(len(papers), holds, fails),
        "scale": ", ".join(dict.fromkeys(told["scale"] for told in studies)),
        "rule": RULE,
        "by_chance": by_chance([claim for _, claim in claims]),
        "claims": claims,
        "studies": shown,
        "figures": as_script(figures),
    }
    return render_page("companion.html.j2", content, out)


def headline(count: int, holds: int, fails: int) -> str:
    """How many claims there are, hold and do not hold, as a sentence."""
    claims = f"claim{'s' if count != 1 else ''} of the paper hold{'s' if holds == 1 else ''}"
    return f"{holds} of {count} {claims}, {fails} {'does' if fails == 1 else 'do'} not"


def read_study(file: Path) -> dict[str, Any] | None:
    """What `run_studies` wrote; none if there is nothing, or nothing that can be read."""
    if not file.exists():
        return None
    try:
        told = json.loads(file.read_text())
        if PARTS <= told.keys():
            return told
        problem = f"it lacks {', '.join(sorted(PARTS - told.keys()))}"
    except (ValueError, AttributeError) as error:
        problem = str(error)
    warnings.warn(f"{file} is left out: {problem}. Do the study again.", stacklevel=2)
    return None


def _shown(told: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of a study; adds its figures."""
    study = find_study(told["study"])
    panels, shades = [], ""
    if (chart := _chart(study, told["numbers"])) is not None:
        shades = chart.values
        for i, (panel, figure) in enumerate(zip(chart.panels, figures_of(chart), strict=True)):
            key = f"{study.name}-{i}"
            figures[key] = _finite(figure)
            # In print, there is more room below than beside.
            title = (panel.title or panel.y).replace("\n", ", ")
            panels.append({"key": key, "title": title})
    return {
        "name": study.name,
        "title": study.title,
        "scale": told["scale"],
        "seeds": seeds_in_words(told),
        "panels": panels,
        "shades": shades,
        "data": told["data"],
        "remarks": told.get("remarks", []),
        "effort": in_words(told.get("effort")),
        "table": told["table"],
        "claims": [(study.name, claim) for claim in told["claims"]],
        "command": command_of(told),
    }


def _chart(study: AbstractStudy, numbers: Any) -> Chart | None:
    """None if there is nothing to draw, or if an earlier version has written it."""
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


def seeds_in_words(told: dict[str, Any]) -> str:
    """How many a study has, after something else; nothing if there are none."""
    count = len(told["seeds"])
    return f", {count} seed{'s' if count != 1 else ''}" if count else ""


def command_of(told: dict[str, Any]) -> str:
    """What does a study again, elsewhere: where there are results, they are used."""
    seeds = f" --seeds {len(told['seeds'])}" if told["seeds"] else ""
    return f"taynode paper run {told['study']} --scale {told['scale']}{seeds} --out again"


def _finite(value: Any) -> Any:
    """Plain data without what JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(x) for key, x in value.items()}
    return [_finite(x) for x in value] if isinstance(value, list | tuple) else value
