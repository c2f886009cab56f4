"""Charts for print, by matplotlib; the one module here that imports it."""

import itertools
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from ..files import drafted
from ..report.palette import LIGHT
from .chart import Chart, Heat, Line, Panel


# The first color is a gray, for unregularized models.
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
    # Equal charts give equal files.
    "svg.hashsalt": "taynode",
}
# Ticks on logarithmic axes, by the largest ratio of two numbers on the axis.
TICKS = {4: (1, 1.5, 2, 3, 4, 5, 6, 7, 8), 10: (1, 2, 3, 5, 7), 100: (1, 2, 5)}
# The width of a panel in inches, by the number of columns.
PANEL_WIDTH = {1: 5.5, 2: 4.2, 3: 3.2}


def save(chart: Chart, stem: Path) -> None:
    """Write the chart as `.svg` and `.png`."""
    figure = figure_of(chart)
    # Some of the style takes effect only when the figure is saved.
    with mpl.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        for suffix, options in {
            ".svg": {"metadata": {"Date": None}, "dpi": 200},
            ".png": {"dpi": 150},
        }.items():
            with drafted(stem.with_name(stem.name + suffix)) as draft:
                figure.savefig(draft, **options)


def figure_of(chart: Chart) -> Figure:
    """The chart as a matplotlib figure."""
    with mpl.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        count = len(chart.panels)
        columns = count if count <= 3 else 2 if count == 4 else 3
        rows = -(-count // columns)
        size = PANEL_WIDTH[columns] * columns, chart.height * rows
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, sharey=chart.share_y, squeeze=False)
        axes, unused = list(grid.flat[:count]), list(grid.flat[count:])
        shades = _shades(chart) if chart.values else None
        for one, panel in zip(axes, chart.panels, strict=True):
            _draw_panel(one, panel, shades)
        if chart.share_y:
            for one in axes:
                if one not in grid[:, 0]:
                    one.set_ylabel("")
        for one in unused:
            one.set_axis_off()
        _draw_legends(figure, axes)
        if shades is not None:
            figure.colorbar(shades, ax=axes, label=chart.values)
    return figure


def _draw_legends(figure: Figure, axes: list[Axes]) -> None:
    """One legend above the panels if it is the same for all, else a legend in each panel."""
    found = [one.get_legend_handles_labels() for one in axes]
    handles, labels = found[0]
    if all(other == labels for _, other in found):
        if handles:
            # An inch holds about 13 letters, and a mark takes the room of 8.
            room = int(13 * figure.get_figwidth() / (8 + max(map(len, labels))))
            columns = max(1, min(len(labels), room))
            figure.legend(handles, labels, loc="outside upper center", ncols=columns)
        return
    for one, (handles, labels) in zip(axes, found, strict=True):
        if handles:
            one.legend(handles, labels)


def _shades(chart: Chart) -> ScalarMappable:
    scale = LinearSegmentedColormap.from_list("taynode", SCALE)
    return ScalarMappable(LogNorm(chart.low, chart.high), scale)


def _draw_panel(axes: Axes, panel: Panel, shades: ScalarMappable | None) -> None:
    for mark in panel.marks:
        if isinstance(mark, Heat):
            _draw_heat(axes, mark)
        elif shades is not None and len(mark.values):
            _draw_shaded(axes, mark, shades)
        else:
            _draw_line(axes, mark)
    axes.set(title=_math(panel.title), xlabel=_math(panel.x), ylabel=_math(panel.y))
    if panel.x_log:
        axes.set_xscale("log")
        _name_ticks(axes.xaxis)
    if panel.y_log:
        axes.set_yscale("log")
        _name_ticks(axes.yaxis)
    if panel.rows:
        axes.set_yticks(range(len(panel.rows)), [_math(row) for row in panel.rows])
        axes.set_ylim(len(panel.rows) - 0.5, -0.5)
    if panel.y_range:
        axes.set_ylim(*panel.y_range)
    if panel.from_zero:
        axes.set_xlim(0, 1.05 * max([x for mark in panel.marks for x in _places(mark)], default=1))


def _name_ticks(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis of less than two decades, where powers say little."""
    low, high = axis.get_data_interval()
    if 0 < low and high < 100 * low:
        # As many ticks as there is room for.
        subs = next(subs for most, subs in TICKS.items() if high <= most * low)
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter(FormatStrFormatter("%g"))
        axis.set_minor_formatter(NullFormatter())


def _places(mark: Line | Heat) -> list[float]:
    return [] if isinstance(mark, Heat) else list(mark.x)


def _draw_line(axes: Axes, line: Line) -> None:
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
    if len(line.x_band):
        both = list(zip(line.x, line.x_band, strict=True))
        edges = [x - band for x, band in both], [x + band for x, band in both]
        axes.fill_betweenx(y, *edges, color=color, alpha=0.2, linewidth=0)


def _draw_shaded(axes: Axes, line: Line, shades: ScalarMappable) -> None:
    points = np.column_stack([np.asarray(line.x, float), np.asarray(line.y, float)])
    pieces = list(np.stack([points[:-1], points[1:]], axis=1))
    collection = LineCollection(pieces, cmap=shades.get_cmap(), norm=shades.norm)
    collection.set_array(np.asarray(line.values)[:-1])
    # There are thousands of pieces: as an image they take less room in the file.
    collection.set_rasterized(True)
    axes.add_collection(collection)
    axes.autoscale()


def _draw_heat(axes: Axes, heat: Heat) -> None:
    axes.grid(visible=False)
    axes.imshow(heat.values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i, j in itertools.product(range(len(heat.rows)), range(len(heat.columns))):
        value = heat.values[i][j]
        color = "white" if value > 0.5 else "black"
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", color=color, fontsize=8)
    axes.set_xticks(range(len(heat.columns)), list(heat.columns))
    axes.set_yticks(range(len(heat.rows)), list(heat.rows))


def _math(text: str) -> str:
    """Text with `R_2` as a formula."""
    return re.sub(r"\bR_(\w)", r"$R_\1$", text)
