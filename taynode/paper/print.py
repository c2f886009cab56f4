"""Charts for print, by matplotlib."""

import itertools
from pathlib import Path
from typing import Any

from ..report.palette import LIGHT
from ..training.records import drafted
from .chart import Chart, Heat, Line, Panel


# The first group color is a gray, for what is unregularized.
COLORS = [LIGHT[f"g{i}"] for i in range(6)]
SCALE = [LIGHT[f"seq{i}"] for i in range(5)]
MARKERS = "os^Dvp"
GUIDE = "0.7"
STYLE = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    # The same file every time.
    "svg.hashsalt": "taynode",
}
PANEL_WIDTH = {1: 5.5, 2: 4.2, 3: 3.4}


def save(chart: Chart, stem: Path) -> None:
    """Write the chart as `.svg` and `.png`."""
    import matplotlib as mpl

    figure = figure_of(chart)
    # Some of the style is only looked at now.
    with mpl.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        for suffix, options in {".svg": {"metadata": {"Date": None}}, ".png": {"dpi": 150}}.items():
            with drafted(stem.with_name(stem.name + suffix)) as draft:
                figure.savefig(draft, **options)


def figure_of(chart: Chart) -> Any:
    """The chart as a matplotlib figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        count = len(chart.panels)
        width = PANEL_WIDTH.get(count, 2.9)
        figure = Figure(figsize=(width * count, chart.height), layout="constrained")
        axes = figure.subplots(1, count, sharey=chart.share_y, squeeze=False)[0]
        shades = _shades(chart) if chart.values else None
        for one, panel in zip(axes, chart.panels, strict=True):
            _draw_panel(one, panel, shades)
        handles, labels = axes[0].get_legend_handles_labels()
        if handles:
            axes[0].legend(handles, labels)
        if shades is not None:
            figure.colorbar(shades, ax=list(axes), label=chart.values)
    return figure


def _shades(chart: Chart) -> Any:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    scale = LinearSegmentedColormap.from_list("taynode", SCALE)
    return ScalarMappable(LogNorm(chart.low, chart.high), scale)


def _draw_panel(axes: Any, panel: Panel, shades: Any) -> None:
    for mark in panel.marks:
        if isinstance(mark, Heat):
            _draw_heat(axes, mark)
        elif len(mark.values):
            _draw_shaded(axes, mark, shades)
        else:
            _draw_line(axes, mark)
    axes.set(title=_math(panel.title), xlabel=_math(panel.x), ylabel=_math(panel.y))
    if panel.x_log:
        axes.set_xscale("log")
    if panel.y_log:
        axes.set_yscale("log")
    if panel.rows:
        axes.set_yticks(range(len(panel.rows)), [_math(row) for row in panel.rows])
        axes.set_ylim(len(panel.rows) - 0.5, -0.5)
    if panel.y_range:
        axes.set_ylim(*panel.y_range)
    if panel.from_zero:
        axes.set_xlim(0, 1.05 * max([x for mark in panel.marks for x in _places(mark)], default=1))


def _places(mark: Line | Heat) -> list[float]:
    return [] if isinstance(mark, Heat) else list(mark.x)


def _draw_line(axes: Any, line: Line) -> None:
    is_guide = line.color < 0
    color = GUIDE if is_guide else COLORS[line.color % len(COLORS)]
    y = [float("nan") if value is None else value for value in line.y]
    marker = MARKERS[line.color % len(MARKERS)] if line.dots and not is_guide else ""
    axes.errorbar(
        line.x,
        y,
        xerr=line.x_error if len(line.x_error) else None,
        yerr=line.y_error if len(line.y_error) else None,
        color=color,
        label=_math(line.label) or None,
        linestyle="-" if line.joined else "",
        linewidth=line.width,
        marker=marker,
        markersize=line.size,
        elinewidth=0.8,
    )


def _draw_shaded(axes: Any, line: Line, shades: Any) -> None:
    import numpy as np
    from matplotlib.collections import LineCollection

    points = np.column_stack([line.x, line.y])
    pieces = list(np.stack([points[:-1], points[1:]], axis=1))
    collection = LineCollection(pieces, cmap=shades.get_cmap(), norm=shades.norm)
    collection.set_array(np.asarray(line.values)[:-1])
    axes.add_collection(collection)
    axes.autoscale()


def _draw_heat(axes: Any, heat: Heat) -> None:
    axes.grid(visible=False)
    axes.imshow(heat.values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i, j in itertools.product(range(len(heat.rows)), range(len(heat.columns))):
        value = heat.values[i][j]
        color = "white" if value > 0.5 else "black"
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", color=color, fontsize=8)
    axes.set_xticks(range(len(heat.columns)), list(heat.columns))
    axes.set_yticks(range(len(heat.rows)), list(heat.rows))


def _math(text: str) -> str:
    """Text with `R_2` as it is printed."""
    import re

    return re.sub(r"\bR_(\w)", r"$R_\1$", text)
