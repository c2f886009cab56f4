"""Figures of flows: data, density and samples."""

from collections.abc import Sequence

import numpy as np

from .figures import base_layout, Figure, short
from .groups import Group
from .runs import StoredRun
from .samples import sheet


BINS = 90
GRAY = [[0, "#000000"], [1, "#ffffff"]]
# Magma: plotly does not know it by name within a page.
DARK = [
    [0, "#000004"],
    [0.25, "#51127c"],
    [0.5, "#b73779"],
    [0.75, "#fc8961"],
    [1, "#fcfdbf"],
]


def density_panels(groups: Sequence[Group]) -> list[tuple[Group | None, str, Figure]]:
    """The data, and the density and samples of each group that has them."""
    found = [(group, next(filter(_kind, group.runs), None)) for group in groups]
    chosen = [(group, run) for group, run in found if run is not None]
    if not chosen:
        return []
    kind = _kind(chosen[0][1])
    chosen = [(group, run) for group, run in chosen if _kind(run) == kind]
    draw = _points if kind == "plane" else _images
    panels: list[tuple[Group | None, str, Figure]] = [
        (None, "Data", draw(chosen[0][1].samples[f"{kind}_data"]))
    ]
    for group, run in chosen:
        if {"density", "density_axis"} <= run.samples.keys():
            axis, values = run.samples["density_axis"], run.samples["density"]
            panels.append((group, "density", _heatmap(axis, axis, values, "density %{z:.3g}")))
        panels.append((group, "samples", draw(run.samples[f"{kind}_samples"])))
    return panels


def _kind(run: StoredRun) -> str | None:
    kinds = ("plane", "image")
    has = lambda kind: {f"{kind}_data", f"{kind}_samples"} <= run.samples.keys()
    return next((kind for kind in kinds if has(kind)), None)


def _points(points: np.ndarray) -> Figure:
    """Points counted in squares: thousands of dots would merge into a blot."""
    bound = 4.5
    edges = np.linspace(-bound, bound, BINS + 1)
    counts, _, _ = np.histogram2d(points[:, 1], points[:, 0], bins=(edges, edges))
    centers = (edges[1:] + edges[:-1]) / 2
    return _heatmap(centers, centers, counts, "%{z} points")


def _heatmap(x: np.ndarray, y: np.ndarray, values: np.ndarray, hover: str) -> Figure:
    values = np.where(np.isfinite(values), values, 0.0)
    trace: Figure = {
        "type": "heatmap",
        "x": short(x, 3),
        "y": short(y, 3),
        "z": [short(row, 3) for row in values],
        "colorscale": DARK,
        "showscale": False,
        "hovertemplate": f"(%{{x:.2f}}, %{{y:.2f}}): {hover}<extra></extra>",
    }
    return {"data": [trace], "layout": base_layout("", "")}


def _images(images: np.ndarray) -> Figure:
    trace: Figure = {
        "type": "heatmap",
        "z": [short(row, 3) for row in sheet(images)],
        "colorscale": GRAY,
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
        "hoverinfo": "skip",
    }
    hidden = {"visible": False}
    layout = base_layout("", "", xaxis=hidden, yaxis=hidden | {"autorange": "reversed"})
    layout["margin"] = {"l": 6, "r": 6, "t": 6, "b": 6}
    return {"data": [trace], "layout": layout}
