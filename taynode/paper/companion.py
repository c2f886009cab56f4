"""The companion of the paper: one page with every study that has been done."""

import json
import math
from pathlib import Path
from typing import Any

from ..report.rendering import as_script, render_page
from ..training.config import ConfigError
from .screen import figures_of
from .study import find_study, STUDIES


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
    holds = sum(claim["verdict"] == "holds" for claim in papers)
    content = {
        "title": "The paper, reproduced",
        "headline": f"{holds} of {len(papers)} claims of the paper hold",
        "scale": ", ".join(dict.fromkeys(told["scale"] for told in studies)),
        "claims": claims,
        "studies": shown,
        "figures": as_script(figures),
    }
    return render_page("companion.html.j2", content, out)


def read_study(file: Path) -> dict[str, Any] | None:
    """What `run_study` wrote; none if there is nothing."""
    if not file.exists():
        return None
    try:
        return json.loads(file.read_text())
    except ValueError as error:
        raise ConfigError(f"{file} is not readable as JSON: {error}. Do the study again.") from None


def _shown(told: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of a study; adds its figures."""
    study = find_study(told["study"])
    panels, shades = [], ""
    if told["numbers"] is not None:
        chart = study.chart(told["numbers"])
        shades = chart.values
        for i, (panel, figure) in enumerate(zip(chart.panels, figures_of(chart), strict=True)):
            key = f"{study.name}-{i}"
            figures[key] = _finite(figure)
            panels.append({"key": key, "title": panel.title or panel.y})
    return {
        "name": study.name,
        "title": study.title,
        "scale": told["scale"],
        "seeds": seeds_in_words(told),
        "panels": panels,
        "shades": shades,
        "data": told["data"],
        "table": told["table"],
        "claims": [(study.name, claim) for claim in told["claims"]],
        "command": command_of(told),
    }


def seeds_in_words(told: dict[str, Any]) -> str:
    """How many a study has, after something else; nothing if there are none."""
    count = len(told["seeds"])
    return f", {count} seed{'s' if count != 1 else ''}" if count else ""


def command_of(told: dict[str, Any]) -> str:
    """What does a study again."""
    seeds = len(told["seeds"])
    words = f"taynode paper run {told['study']} --scale {told['scale']}"
    return f"{words} --seeds {seeds}" if seeds else words


def _finite(value: Any) -> Any:
    """Plain data without what JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(x) for key, x in value.items()}
    return [_finite(x) for x in value] if isinstance(value, list | tuple) else value
