"""Figures of single series: what was observed, and what the model says."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .figures import base_layout, Figure
from .groups import Group
from .runs import Run


NEEDED = {f"series_{name}" for name in ("times", "values", "dense", "mean", "low", "high", "names")}


def series_panels(groups: Sequence[Group]) -> list[tuple[Group, str, Figure]]:
    """For each group a panel per series and channel."""
    panels = []
    for group in groups:
        run = next((run for run in group.runs if NEEDED <= run.samples.keys()), None)
        if run is None:
            continue
        values = run.samples["series_values"]
        for i in range(values.shape[0]):
            for j, name in enumerate(run.samples["series_names"].tolist()):
                panels.append((group, f"{name}, series {i + 1}", _panel(group, run, i, j)))
    return panels


def _panel(group: Group, run: Run, i: int, j: int) -> Figure:
    arrays = {name: run.samples[f"series_{name}"] for name in ("mean", "low", "high")}
    mean, low, high = (arrays[name][i, :, j] for name in ("mean", "low", "high"))
    dense, color = _short(run.samples["series_dense"]), f"@{group.color}"
    seen = run.samples["series_values"][i, :, j]
    is_seen = np.isfinite(seen)
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
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": _short(run.samples["series_times"][is_seen]),
        "y": _short(seen[is_seen]),
        "marker": {"color": "@ink", "size": 5},
        "hovertemplate": "%{y:.3g} observed<extra></extra>",
    }
    edge = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1}
    layout = base_layout("Time", "", shapes=[edge | {"line": {"color": "@line", "dash": "dot"}}])
    return {"data": [band, line, dots], "layout": layout}


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
