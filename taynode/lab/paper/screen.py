"""Charts for the page, as JSON for plotly; colors are names that the theme of the page defines."""

import math

from ..report.figures import base_layout, Figure, plain, SYMBOLS
from .chart import Chart, Heat, Line, Panel


NUM_COLORS = 6


def figures_of(chart: Chart) -> list[Figure]:
    """A figure for each panel."""
    return [_panel(chart, panel) for panel in chart.panels]


def _panel(chart: Chart, panel: Panel) -> Figure:
    layout = base_layout(plain(panel.x), plain(panel.y), xaxis=_axis(panel.x_log))
    layout["yaxis"] |= _axis(panel.y_log)
    data = []
    for mark in panel.marks:
        data += [_heat(mark)] if isinstance(mark, Heat) else _line(mark, chart)
    if panel.rows:
        names = [plain(row) for row in panel.rows]
        places = {"tickvals": list(range(len(names))), "ticktext": names, "nticks": 0}
        layout["yaxis"] |= places | {"range": [len(names) - 0.5, -0.5], "automargin": True}
    if panel.y_range:
        layout["yaxis"]["range"] = list(panel.y_range)
    if panel.from_zero:
        layout["xaxis"]["rangemode"] = "tozero"
    if any(isinstance(mark, Heat) for mark in panel.marks):
        layout["yaxis"] |= {"autorange": "reversed", "automargin": True}
    named = [trace for trace in data if trace.get("showlegend")]
    if len(named) > 1:
        layout |= {"showlegend": True, "legend": {"orientation": "h", "y": 1.12}}
        layout["margin"]["t"] = 40
    return {"data": data, "layout": layout}


def _axis(is_log: bool) -> Figure:
    return {"type": "log", "exponentformat": "power"} if is_log else {}


def _line(line: Line, chart: Chart) -> list[Figure]:
    is_guide = line.color < 0
    index = line.color % NUM_COLORS
    color = "@line" if is_guide else f"@g{index}"
    joined, dots = line.joined, line.dots and not is_guide
    trace: Figure = {
        "type": "scatter",
        "x": list(line.x),
        "y": list(line.y),
        "mode": "+".join(["lines"] * joined + ["markers"] * (dots or not joined)),
        "name": plain(line.label),
        "showlegend": bool(line.label),
        "hoverinfo": "skip" if is_guide else "x+y+name" if line.label else "x+y",
        "line": {"color": color, "width": line.width},
        "marker": {
            "color": color,
            "size": 1.5 * line.size,
            "symbol": SYMBOLS[index % len(SYMBOLS)],
        },
    }
    for name, error in (("error_x", line.x_error), ("error_y", line.y_error)):
        if len(error):
            trace[name] = {"array": list(error), "color": color, "thickness": 1, "width": 2}
    if len(line.values):
        # A line has a single color, so small points along it show the values.
        trace["line"] = {"color": "@line", "width": 1}
        trace["mode"] = "lines+markers"
        trace["marker"] = {
            "size": 4,
            "color": [f"@seq:{_share(x, chart.low, chart.high):.3f}" for x in line.values],
        }
    return [trace, *([_band(line, color)] if len(line.x_band) else [])]


def _band(line: Line, color: str) -> Figure:
    """The band as an area: up along one side, and down along the other."""
    both = list(zip(line.x, line.x_band, strict=True))
    return {
        "type": "scatter",
        "x": [x - band for x, band in both] + [x + band for x, band in reversed(both)],
        "y": [*line.y, *reversed(line.y)],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": f"{color}:0.2",
        "line": {"width": 0},
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _share(value: float, low: float, high: float) -> float:
    if not value > 0:
        return 0.0
    return min(1.0, max(0.0, math.log(value / low) / math.log(high / low)))


def _heat(heat: Heat) -> Figure:
    return {
        "type": "heatmap",
        "z": [list(row) for row in heat.values],
        "x": list(heat.columns),
        "y": list(heat.rows),
        "zmin": 0,
        "zmax": 1,
        # From the color of the background, in each theme.
        "colorscale": [[0, "@surface"], [1, "@g1"]],
        "showscale": False,
        "texttemplate": "%{z:.2f}",
        "hovertemplate": "%{y}, %{x}: %{z:.2f}<extra></extra>",
    }
