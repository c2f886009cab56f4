"""Histograms of evaluations over samples."""

import math
from collections.abc import Sequence

import numpy as np

from .figures import base_layout, Figure, plain, short
from .formats import percent
from .groups import Group


SPLITS = {"train": "training", "test": "test"}


def histogram_figures(groups: Sequence[Group]) -> dict[str, Figure]:
    """Histograms of evaluations over training and test samples, on common axes."""
    counts = {split: [_pooled(group, f"{split}_nfe") for group in groups] for split in SPLITS}
    everything = np.concatenate([x for arrays in counts.values() for x in arrays])
    if not len(everything):
        return {}
    edges = _edges(everything, max(8, 60 // len(groups)))
    heights = {
        split: [np.histogram(x, edges)[0] / max(1, len(x)) for x in arrays]
        for split, arrays in counts.items()
    }
    top = max(float(x.max()) for arrays in heights.values() for x in arrays)
    figures = {}
    for split, arrays in heights.items():
        traces = [
            _bars(group, edges, shares, split)
            for group, shares in zip(groups, arrays, strict=True)
            if shares.any()
        ]
        if traces:
            layout = base_layout(
                f"Evaluations per {SPLITS[split]} sample",
                "Share of samples",
                barmode="group",
                bargap=0.12,
                bargroupgap=0.06,
                xaxis={"range": [float(edges[0]), float(edges[-1])]} | _ticks(edges),
                yaxis={"tickformat": ".0%", "range": [0, 1.06 * top]},
            )
            figures[split] = {"data": traces, "layout": layout}
    return figures


def _pooled(group: Group, name: str) -> np.ndarray:
    arrays = [np.ravel(run.samples[name]) for run in group.runs if name in run.samples]
    joined = np.concatenate([np.zeros(0), *arrays]).astype(float)
    return joined[np.isfinite(joined)]


def _edges(values: np.ndarray, most: int) -> np.ndarray:
    """A bin for each possible count if these are few. Counts differ by whole steps."""
    low, high = values.min(), values.max()
    integers = np.unique(values.round().astype(int))
    step = int(np.gcd.reduce(np.diff(integers))) if len(integers) > 1 else 1
    step *= max(1, math.ceil((high - low) / step / most))
    return np.arange(low - step / 2, high + step, step)


def _ticks(edges: np.ndarray) -> Figure:
    """A tick at each bin, or fewer if there is not enough room."""
    centers = (edges[:-1] + edges[1:]) / 2
    step = math.ceil(len(centers) / 8)
    return {"tickvals": centers[::step].tolist()}


def _bars(group: Group, edges: np.ndarray, shares: np.ndarray, split: str) -> Figure:
    lows, highs = np.ceil(edges[:-1]).astype(int), np.ceil(edges[1:]).astype(int) - 1
    spans = [f"{a}" if a >= b else f"{a} to {b}" for a, b in zip(lows, highs, strict=True)]
    lines = [
        f"{span} evaluations: {percent(float(share))} of {SPLITS[split]} samples"
        for span, share in zip(spans, shares, strict=True)
    ]
    return {
        "type": "bar",
        "name": plain(group.title),
        "legendgroup": group.key,
        "x": ((edges[:-1] + edges[1:]) / 2).tolist(),
        "y": short(shares),
        "text": lines,
        "textposition": "none",
        "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
        "marker": {
            "color": f"@{group.color}",
            "pattern": {"shape": "/" if group.repeats_color else ""},
        },
    }
