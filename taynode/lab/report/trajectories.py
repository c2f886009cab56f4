"""Figures of paths, with their derivatives as colors and the solver's steps as dots."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .figures import base_layout, Figure, plain, short
from .groups import Group
from .views import Path, view_paths


NUM_SHADES = 24


class Panels(NamedTuple):
    """Panels side by side, and the scale that they share."""

    order: int
    low: float
    high: float
    is_line: bool
    aspect: float
    remarks: list[str]
    figures: list[tuple[Group, Figure]]


def draw_paths(groups: Sequence[Group]) -> Panels | None:
    """A panel for each group that has paths, with common axes and colors."""
    view = view_paths(groups)
    if view is None:
        return None
    paths, order = view.paths, view.order
    low, high = _shade_range(paths)
    axes = _axes(paths)
    figures = [(path.group, _panel(path, order, low, high, axes)) for path in paths]
    remarks = []
    if view.share is not None:
        remarks.append(f"The two directions hold {view.share:.0%} of the variance of all states.")
    if view.left_out:
        names = "; ".join(group.label for group in view.left_out)
        remarks.append(f"Without such paths, and not drawn: {names}.")
    return Panels(order, low, high, paths[0].is_line, _aspect(axes), remarks, figures)


def _shade_range(paths: list[Path]) -> tuple[float, float]:
    """The powers of ten at the ends of the color scale."""
    values = np.concatenate([path.derivative.ravel() for path in paths])
    values = values[np.isfinite(values) & (values > 0)]
    if not len(values):
        return -1.0, 1.0
    low, high = np.log10(np.quantile(values, [0.05, 0.995]))
    # A derivative is tiny where it changes its sign, which does not matter.
    low = max(low, high - 4)
    return (float(low), float(high)) if high - low > 0.3 else (float(high) - 0.3, float(high))


def _axes(paths: list[Path]) -> Figure:
    points = np.concatenate([path.states.reshape(-1, path.states.shape[-1]) for path in paths])
    lows, highs = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    pads = 0.05 * np.maximum(highs - lows, 1e-9)
    ranges = [[float(a), float(b)] for a, b in zip(lows - pads, highs + pads, strict=True)]
    if not paths[0].is_line:
        x, y = ranges
        # All panels have one size, so the smaller range is widened.
        square = {"scaleanchor": "x", "scaleratio": 1, "constrain": "range"}
        return base_layout(
            "First direction",
            "Second direction",
            xaxis={"range": x},
            yaxis={"range": y} | square,
        )
    ends = [float(t) for path in paths for t in (path.times[0], path.times[-1])]
    margin = 0.03 * (max(ends) - min(ends))
    x = [min(ends) - margin, max(ends) + margin]
    return base_layout("Time", "State", xaxis={"range": x}, yaxis={"range": ranges[0]})


def _aspect(axes: Figure) -> float:
    """The ratio of width and height of a panel that fits the ranges, within bounds."""
    (left, right), (bottom, top) = (axes[name]["range"] for name in ("xaxis", "yaxis"))
    return min(1.6, max(1.0, (right - left) / (top - bottom)))


def _panel(path: Path, order: int, low: float, high: float, layout: Figure) -> Figure:
    size = np.log10(np.maximum(path.derivative, 1e-300))
    size = np.where(np.isfinite(size), size, high)
    middle = (size[:, 1:] + size[:, :-1]) / 2
    shade = np.clip((middle - low) / (high - low) * NUM_SHADES, 0, NUM_SHADES - 1).astype(int)
    lines = [_shaded(path, shade == k, k) for k in range(NUM_SHADES)]
    drawn = [line for line in lines if line["x"]]
    return {"data": [*drawn, _starts(path), _dots(path, order)], "layout": layout}


def _shaded(path: Path, chosen: np.ndarray, shade: int) -> Figure:
    """All pieces of one color as a single line with gaps, which is faster than many lines."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for mask, states in zip(chosen, path.states, strict=True):
        x, y = (path.times, states[:, 0]) if path.is_line else (states[:, 0], states[:, 1])
        places = np.flatnonzero(mask)
        for piece in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
            if len(piece):
                part = slice(piece[0], piece[-1] + 2)
                xs += [*short(x[part]), None]
                ys += [*short(y[part]), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": xs,
        "y": ys,
        "line": {"color": f"@seq:{shade / (NUM_SHADES - 1):.3f}", "width": 2},
        "hoverinfo": "skip",
    }


def _starts(path: Path) -> Figure:
    first = np.full(len(path.states), path.times[0]) if path.is_line else path.states[:, 0, 0]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": short(first),
        "y": short(path.states[:, 0, 0 if path.is_line else 1]),
        "hovertemplate": "start<extra></extra>",
        "marker": {"color": "@surface", "size": 5.5, "line": {"color": "@ink", "width": 1}},
    }


def _dots(path: Path, order: int) -> Figure:
    xs, ys, texts = [], [], []
    for i, states in enumerate(path.states):
        times = path.steps[i][np.isfinite(path.steps[i])]
        at = [np.interp(times, path.times, column) for column in (*states.T, path.derivative[i])]
        xs += short(times if path.is_line else at[0])
        ys += short(at[0] if path.is_line else at[1])
        who = f"sample {i + 1}" if path.labels is None else f"class {path.labels[i]}"
        texts += [
            f"{who}, step {j + 1} of {len(times)}<br>time {t:.3g}<br>derivative {order}: {d:.3g}"
            for j, (t, d) in enumerate(zip(times, at[-1], strict=True))
        ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(path.group.title),
        "x": xs,
        "y": ys,
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": "@ink", "size": 5.5, "line": {"color": "@surface", "width": 1}},
    }
