"""Figures of single series: observations and predictions."""

from collections.abc import Sequence

import numpy as np

from .figures import band, base_layout, Figure, short
from .groups import Group
from .runs import StoredRun


NAMES = ("times", "values", "seen", "dense", "mean", "low", "high", "names", "end", "unit")
NEEDED = {f"series_{name}" for name in NAMES}


def series_panels(groups: Sequence[Group]) -> list[tuple[Group, str, Figure]]:
    """A panel for each series, channel and group that has it; groups share the axis."""
    drawn = [
        (group, run)
        for group in groups
        if (run := next((run for run in group.runs if NEEDED <= run.samples.keys()), None))
    ]
    panels = []
    for alike in _alike(drawn):
        first = alike[0][1].samples
        for i in range(len(first["series_values"])):
            for j, name in enumerate(first["series_names"].tolist()):
                bounds = _bounds([run.samples for _, run in alike], i, j)
                panels += [
                    (group, f"{name}, series {i + 1}", _panel(group, run, i, j, bounds))
                    for group, run in alike
                ]
    return panels


def _alike(drawn: Sequence[tuple[Group, StoredRun]]) -> list[list[tuple[Group, StoredRun]]]:
    """Groups that show the same series together; tasks and scales differ in their series."""
    found: list[list[tuple[Group, StoredRun]]] = []
    for each in drawn:
        for others in found:
            if _same_series(each[1].samples, others[0][1].samples):
                others.append(each)
                break
        else:
            found.append([each])
    return found


def _same_series(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    # Runs in single and double precision show the same series, up to rounding.
    return np.array_equal(a["series_names"], b["series_names"]) and all(
        a[name].shape == b[name].shape
        and np.allclose(a[name], b[name], rtol=1e-3, atol=1e-6, equal_nan=True)
        for name in ("series_times", "series_values")
    )


def _bounds(samples: Sequence[dict[str, np.ndarray]], i: int, j: int) -> list[float | None]:
    names = ("series_values", "series_low", "series_high")
    every = np.concatenate([x[name][i, :, j] for x in samples for name in names])
    every = every[np.isfinite(every)]
    low, high = (every.min(), every.max()) if len(every) else (0.0, 1.0)
    margin = 0.05 * (high - low)
    return short(np.array([low - margin, high + margin]))


def _panel(group: Group, run: StoredRun, i: int, j: int, bounds: list[float | None]) -> Figure:
    known = {name: run.samples[f"series_{name}"] for name in NAMES}
    mean, low, high = (known[name][i, :, j] for name in ("mean", "low", "high"))
    dense, color = short(known["dense"]), f"@{group.color}"
    # A failed solve leaves a gap in the band.
    there = np.isfinite(low) & np.isfinite(high)
    within = short(known["dense"][there])
    shade = band(group, within, short(low[there]), short(high[there]), 0.2)
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": dense,
        "y": short(mean),
        "line": {"color": color, "width": 2},
        "hovertemplate": "%{y:.3g} predicted<extra></extra>",
    }
    values, seen = known["values"][i, :, j], known["seen"][i, :, j]
    dots = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": short(known["times"][which]),
            "y": short(values[which]),
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
    return {"data": [shade, line, *dots], "layout": layout}
