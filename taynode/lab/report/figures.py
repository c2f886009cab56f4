"""Figures of training and its costs, as JSON for plotly.

Colors are names, such as `@g1` or `@g1:0.2`. The page replaces them by the colors of its theme.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, SupportsFloat, TypeAlias

from .formats import fixed, is_number, number
from .groups import Group
from .headline import quality


SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "bowtie")
BAND = ("test_nfe_q05", "test_nfe_q95")
# A figure of plotly as JSON, or a part of one.
Figure: TypeAlias = dict[str, Any]
# `None` is a gap.
Coordinates: TypeAlias = Sequence[float | None]


def short(values: Iterable[SupportsFloat], digits: int = 4) -> list[float | None]:
    """Numbers with few digits, which is more than a screen shows; `None` if not finite."""
    return [float(f"{x:.{digits}g}") if math.isfinite(x) else None for x in map(float, values)]


def base_layout(x_title: str, y_title: str, **more: Any) -> Figure:
    """The layout that all figures share. Margins are fixed, so that panels line up."""
    axis = {
        "gridcolor": "@grid",
        "linecolor": "@line",
        "tickcolor": "@line",
        "ticks": "outside",
        "ticklen": 4,
        "showline": True,
        "zeroline": False,
        "nticks": 6,
    }
    label = {"standoff": 8, "font": {"size": 13}}
    return {
        "margin": {"l": 56 if y_title else 44, "r": 14, "t": 10, "b": 48},
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "@muted"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": False,
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "@line", "activecolor": "@ink"},
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": "@surface",
            "bordercolor": "@line",
            "font": {"color": "@ink", "size": 13},
            "align": "left",
            "namelength": -1,
        },
        "xaxis": axis | {"title": {"text": x_title} | label} | more.pop("xaxis", {}),
        "yaxis": axis | {"title": {"text": y_title} | label} | more.pop("yaxis", {}),
        **more,
    }


def plain(text: str) -> str:
    """Text for plotly, which reads some HTML, with `R_2` as a formula."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"\bR_(\w)", r"R<sub>\1</sub>", safe)


def clock(groups: Sequence[Group]) -> str:
    """The unit of time: epochs, unless some row lacks them."""
    rows = [row for group in groups for run in group.runs for row in run.rows]
    return "epoch" if all(is_number(row.get("epoch")) for row in rows) else "step"


def curve(group: Group, name: str, time: str) -> tuple[list[float], list[float]]:
    """A metric during training, as the mean over the seeds that have it at a time."""
    values: dict[float, list[float]] = {}
    for run in group.runs:
        for row in run.rows:
            if is_number(row.get(name)):
                values.setdefault(float(row[time]), []).append(float(row[name]))
    times = sorted(values)
    return times, [sum(values[t]) / len(values[t]) for t in times]


def line(
    group: Group, index: int, x: list[float], y: list[float], hover: str, **more: Any
) -> Figure:
    """A line with markers, in the color of a group."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": plain(group.title),
        "legendgroup": group.key,
        "x": x,
        "y": [float(f"{value:.5g}") for value in y],
        "hovertemplate": f"{hover}<extra>%{{fullData.name}}</extra>",
        "line": {
            "color": f"@{group.color}",
            "width": 2,
            "dash": "longdash" if group.repeats_color else "solid",
        }
        | more.pop("line", {}),
        "marker": {
            "color": f"@{group.color}",
            "symbol": SYMBOLS[index % len(SYMBOLS)],
            "size": 7,
            "line": {"color": "@surface", "width": 1},
        }
        | more.pop("marker", {}),
        **more,
    }


def nfe_figure(groups: Sequence[Group]) -> Figure | None:
    """Evaluations per test sample during training, with a band of 90 % of the samples."""
    time = clock(groups)
    bands, lines = [], []
    for i, group in enumerate(groups):
        (x, low), (x_high, high) = (curve(group, name, time) for name in BAND)
        if len(x) > 1 and x == x_high:
            opacity = 0.18 if len(groups) < 4 else 0.1
            bands.append(band(group, x, low, high, opacity) | {"legendgroup": group.key})
        times, means = curve(group, "test_nfe", time)
        hover, more = "%{y:.1f}", {}
        if times == x == x_high:
            hover += " (%{customdata[0]:.0f} to %{customdata[1]:.0f})"
            more = {"customdata": [list(pair) for pair in zip(low, high, strict=True)]}
        if times:
            lines.append(line(group, i, times, means, hover, **more))
    if not lines:
        return None
    layout = over_time(time, yaxis={"rangemode": "tozero"})
    return {"data": bands + lines, "layout": layout}


def band(
    group: Group, x: Coordinates, low: Coordinates, high: Coordinates, opacity: float
) -> Figure:
    """The area between two lines, in the color of a group."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*x, *reversed(x)],
        "y": [*high, *reversed(low)],
        "fill": "toself",
        "fillcolor": f"@{group.color}:{opacity}",
        "line": {"width": 0, "color": f"@{group.color}:0"},
        "hoverinfo": "skip",
    }


def over_time(time: str, **more: Any) -> Figure:
    """The layout of a figure over the time of training."""
    name = time.capitalize()
    layout = base_layout(name, "", hovermode="x unified", **more)
    layout["xaxis"]["unifiedhovertitle"] = {"text": f"{name} %{{x:.3~f}}"}
    return layout


def metric_figure(groups: Sequence[Group], metric: str) -> Figure | None:
    """A metric during training: on test data, and dotted on training data."""
    time = clock(groups)
    traces, seen = [], []
    share = metric == "error"
    for i, group in enumerate(groups):
        for split in ("test", "train"):
            x, y = curve(group, f"{split}_{metric}", time)
            seen += y
            hover = f"%{{y:{'.2%' if share else '.4g'}}} {split}"
            thin = {"line": {"dash": "dot", "width": 1.5}, "marker": {"size": 4}}
            more = thin if split == "train" else {}
            if x:
                traces.append(line(group, i, x, y, hover, **more))
    if not traces:
        return None
    axis: Figure = {"tickformat": ".0%", "rangemode": "tozero"} if share else {}
    # Losses of densities may be negative.
    if not share and min(seen) > 0 and max(seen) > 8 * min(seen):
        axis = {"type": "log", "dtick": "D2", "tickformat": "~g"}
    return {"data": traces, "layout": over_time(time, yaxis=axis)}


def tradeoff_figure(groups: Sequence[Group]) -> Figure | None:
    """Cost against quality, a point for each group; `None` for fewer than three groups."""
    names = {quality(group)[0] for group in groups}
    points = [
        (i, group, group.last("test_nfe"), quality(group)[1]) for i, group in enumerate(groups)
    ]
    points = [p for p in points if p[2].mean is not None and p[3].mean is not None]
    if len(points) < 3 or len(names) > 1:
        return None
    share = names == {"test_error"}
    traces = []
    for i, group, nfe, found in points:
        hover = f"%{{x:.1f}} evaluations, %{{y:{'.2%' if share else '.4g'}}}"
        trace = line(group, i, [nfe.mean or 0.0], [found.mean or 0.0], hover)
        bars = {"type": "data", "color": f"@{group.color}", "thickness": 1.2, "width": 4}
        trace["marker"]["size"] = 12
        trace["error_x"] = bars | {"array": [nfe.std or 0.0], "visible": nfe.std is not None}
        trace["error_y"] = bars | {"array": [found.std or 0.0], "visible": found.std is not None}
        traces.append(trace)
    quality_axis = {"tickformat": ".2~%"} if share else {}
    title = "Test error" if share else "Test loss"
    layout = base_layout("Evaluations per test sample", title, yaxis=quality_axis)
    layout["margin"]["l"] = 68
    return {"data": traces, "layout": layout}


def describe(groups: Sequence[Group], name: str) -> str:
    """The last values of a metric, for readers who cannot see the figure."""
    show = fixed if name == "test_nfe" else number
    known = [(group.label, group.last(name).mean) for group in groups]
    return "; ".join(f"{label}: {show(mean)}" for label, mean in known if mean is not None)
