"""Figures of single series: what was observed, and what the model says."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .figures import base_layout, Figure
from .groups import Group
from .runs import Run


NAMES = ("times", "values", "seen", "dense", "mean", "low", "high", "names", "end", "unit")
NEEDED = {f"series_{name}" for name in NAMES}


def series_panels(groups: Sequence[Group]) -> list[tuple[Group, str, Figure]]:
    """For each series and channel a panel of each group, with a common axis."""
    drawn = [
        (group, run)
        for group in groups
        if (run := next((run for run in group.runs if NEEDED <= run.samples.keys()), None))
    ]
    if not drawn:
        return []
    panels = []
    first = drawn[0][1].samples
    for i in range(len(first["series_values"])):
        for j, name in enumerate(first["series_names"].tolist()):
            bounds = _bounds([run.samples for _, run in drawn], i, j)
            panels += [
                (group, f"{name}, series {i + 1}", _panel(group, run, i, j, bounds))
                for group, run in drawn
            ]
    return panels


def _bounds(samples: Sequence[dict[str, np.ndarray]], i: int, j: int) -> list[float]:
    names = ("series_values", "series_low", "series_high")
    every = np.concatenate([x[name][i, :, j] for x in samples for name in names])
    low, high = np.nanmin(every), np.nanmax(every)
    margin = 0.05 * (high - low)
    return _short(np.array([low - margin, high + margin]))


def _panel(group: Group, run: Run, i: int, j: int, bounds: list[float]) -> Figure:
    known = {name: run.samples[f"series_{name}"] for name in NAMES}
    mean, low, high = (known[name][i, :, j] for name in ("mean", "low", "high"))
    dense, color = _short(known["dense"]), f"@{group.color}"
    band: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "x": dense + dense[::-1],
        "y": _short(high) + _short(low)[::-1],
        "fill": "toself",
        "fillcolor": f"{color}:0.2",
        "line": {"width": 0, "color": f"{color}:0"},
        "hoverinfo": "skip",
    }
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": dense,
        "y": _short(mean),
        "line": {"color": color, "width": 2},
        "hovertemplate": "%{y:.3g} predicted<extra></extra>",
    }
    values, seen = known["values"][i, :, j], known["seen"][i, :, j]
    dots = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": _short(known["times"][which]),
            "y": _short(values[which]),
            "marker": {"color": "@ink", "size": 5, "symbol": symbol},
            "hovertemplate": f"%{{y:.3g}} {word}<extra></extra>",
        }
        for word, symbol, which in (
            ("observed and seen", "circle", seen),
            ("observed, not seen", "circle-open", np.isfinite(values) & ~seen),
        )
    ]
    end = float(known["end"])
    edge = {"type": "line", "x0": end, "x1": end, "yref": "paper", "y0": 0, "y1": 1}
    unit = str(known["unit"])
    layout = base_layout(
        f"Time, {unit}" if unit else "Time",
        "",
        shapes=[edge | {"line": {"color": "@line", "dash": "dot"}}],
    )
    layout["yaxis"] = layout.get("yaxis", {}) | {"range": bounds}
    return {"data": [band, line, *dots], "layout": layout}


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
