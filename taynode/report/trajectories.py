"""Figures of paths: where they go, how sharply they bend, where the solver steps."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .figures import base_layout, Figure, plain
from .groups import Group
from .runs import Run
from .samples import derivative_order


NUM_SHADES = 24
NEEDED = ("path_times", "path_states", "path_derivative", "step_times")


class Path(NamedTuple):
    """The paths of a group, which are those of one of its runs."""

    group: Group
    times: np.ndarray
    states: np.ndarray
    derivative: np.ndarray
    steps: np.ndarray
    labels: np.ndarray | None

    @property
    def is_line(self) -> bool:
        """Whether the state is a number, so that there is room for time."""
        return self.states.shape[-1] == 1


class Panels(NamedTuple):
    """Panels side by side, with what they have in common."""

    order: int
    low: float
    high: float
    is_line: bool
    aspect: float
    seen_from: str
    figures: list[tuple[Group, Figure]]


def draw_paths(groups: Sequence[Group]) -> Panels | None:
    """A panel for each group that has paths, with common axes and colors."""
    chosen = [(group, run) for group in groups if (run := _first_with_paths(group)) is not None]
    if not chosen:
        return None
    # States of different sizes have no axes in common: those like the first are drawn.
    size = _state_size(chosen[0][1])
    chosen = [(group, run) for group, run in chosen if _state_size(run) == size]
    order = _common_order([run for _, run in chosen])
    states, seen_from = _seen_together([run for _, run in chosen])
    paths = [
        Path(
            group,
            run.samples["path_times"].astype(float),
            view,
            run.samples["path_derivative"][order - 1].astype(float),
            run.samples["step_times"].astype(float),
            run.samples.get("path_labels"),
        )
        for (group, run), view in zip(chosen, states, strict=True)
    ]
    low, high = _shade_range(paths)
    axes = _axes(paths)
    figures = [(path.group, _panel(path, order, low, high, axes)) for path in paths]
    return Panels(order, low, high, paths[0].is_line, _aspect(axes), seen_from, figures)


def _first_with_paths(group: Group) -> Run | None:
    return next((run for run in group.runs if _has_paths(run)), None)


def _has_paths(run: Run) -> bool:
    """Whether all arrays are there and fit together."""
    if any(name not in run.samples for name in NEEDED):
        return False
    times, states, derivative, steps = (run.samples[name] for name in NEEDED)
    return (
        (times.ndim, states.ndim, derivative.ndim, steps.ndim) == (1, 3, 3, 2)
        and derivative.shape[1:] == states.shape[:2] == (len(steps), len(times))
        and len(times) > 1
        and len(derivative) > 0
        and bool(np.isfinite(states).all(axis=-1).any())
    )


def _state_size(run: Run) -> int:
    basis = run.samples.get("path_basis")
    return run.samples["path_states"].shape[-1] if basis is None else basis.shape[-1]


def _common_order(runs: list[Run]) -> int:
    """The derivative that was charged, if all runs know it; otherwise the highest they know."""
    names = [str(run.regularizer.get("name", "none")) for run in runs]
    charged = {derivative_order(name) for name in names if name[:1] == "r" and name[1:].isdigit()}
    known = min(len(run.samples["path_derivative"]) for run in runs)
    wanted = charged.pop() if len(charged) == 1 else 3
    return min(wanted, known)


def _seen_together(runs: list[Run]) -> tuple[list[np.ndarray], str]:
    """States in at most two dimensions, the same ones for all runs."""
    states = [run.samples["path_states"].astype(float) for run in runs]
    if states[0].shape[-1] == 1:
        return states, ""
    if _state_size(runs[0]) == 2 or any("path_basis" not in run.samples for run in runs):
        return [x[..., :2] for x in states], ""
    bases = [run.samples["path_basis"].astype(float) for run in runs]
    means = [run.samples["path_mean"].astype(float) for run in runs]
    # All points lie in the span of all directions, up to what was left out: little work in it.
    center = np.mean(means, axis=0)
    shared = np.linalg.qr(np.concatenate([*bases, *(m[None] - center for m in means)]).T)[0]
    views = [
        (x @ basis + mean - center) @ shared
        for x, basis, mean in zip(states, bases, means, strict=True)
    ]
    points = np.concatenate([view.reshape(-1, view.shape[-1]) for view in views])
    points = points[np.isfinite(points).all(axis=-1)]
    sizes, directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[1:]
    share = (sizes[:2] ** 2).sum() / max((sizes**2).sum(), 1e-300)
    told = f"The two directions hold {100 * share:.0f} % of the variance of the drawn paths."
    return [view @ directions[:2].T for view in views], told


def _shade_range(paths: list[Path]) -> tuple[float, float]:
    """Between which powers of ten colors vary."""
    values = np.concatenate([path.derivative.ravel() for path in paths])
    values = values[np.isfinite(values) & (values > 0)]
    if not len(values):
        return -1.0, 1.0
    low, high = np.log10(np.quantile(values, [0.05, 0.995]))
    # Where a derivative changes its sign it is tiny, which matters to nobody.
    low = max(low, high - 4)
    return (float(low), float(high)) if high - low > 0.3 else (float(high) - 0.3, float(high))


def _axes(paths: list[Path]) -> dict[str, Any]:
    points = np.concatenate([path.states.reshape(-1, path.states.shape[-1]) for path in paths])
    lows, highs = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    pads = 0.05 * np.maximum(highs - lows, 1e-9)
    ranges = [[float(a), float(b)] for a, b in zip(lows - pads, highs + pads, strict=True)]
    if not paths[0].is_line:
        x, y = ranges
        # Whichever range is too small for the panel is widened: all panels are of one size.
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


def _aspect(axes: dict[str, Any]) -> float:
    """Width over height of a panel that fits the ranges, within reason."""
    (left, right), (bottom, top) = (axes[name]["range"] for name in ("xaxis", "yaxis"))
    return min(1.6, max(1.0, (right - left) / (top - bottom)))


def _panel(path: Path, order: int, low: float, high: float, layout: dict[str, Any]) -> Figure:
    size = np.log10(np.maximum(path.derivative, 1e-300))
    size = np.where(np.isfinite(size), size, high)
    middle = (size[:, 1:] + size[:, :-1]) / 2
    shade = np.clip((middle - low) / (high - low) * NUM_SHADES, 0, NUM_SHADES - 1).astype(int)
    lines = [_shaded(path, shade == k, k) for k in range(NUM_SHADES)]
    drawn = [line for line in lines if line["x"]]
    return {"data": [*drawn, _starts(path), _dots(path, order)], "layout": layout}


def _shaded(path: Path, chosen: np.ndarray, shade: int) -> dict[str, Any]:
    """All pieces of one color as a single line with gaps: far faster than a line for each."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for mask, states in zip(chosen, path.states, strict=True):
        x, y = (path.times, states[:, 0]) if path.is_line else (states[:, 0], states[:, 1])
        places = np.flatnonzero(mask)
        for piece in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
            if len(piece):
                part = slice(piece[0], piece[-1] + 2)
                xs += [*_short(x[part]), None]
                ys += [*_short(y[part]), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": xs,
        "y": ys,
        "line": {"color": f"@seq:{shade / (NUM_SHADES - 1):.3f}", "width": 2},
        "hoverinfo": "skip",
    }


def _starts(path: Path) -> dict[str, Any]:
    first = np.full(len(path.states), path.times[0]) if path.is_line else path.states[:, 0, 0]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": _short(first),
        "y": _short(path.states[:, 0, 0 if path.is_line else 1]),
        "hovertemplate": "start<extra></extra>",
        "marker": {"color": "@surface", "size": 5.5, "line": {"color": "@ink", "width": 1}},
    }


def _dots(path: Path, order: int) -> dict[str, Any]:
    xs, ys, texts = [], [], []
    for i, states in enumerate(path.states):
        times = path.steps[i][np.isfinite(path.steps[i])]
        at = [np.interp(times, path.times, column) for column in (*states.T, path.derivative[i])]
        xs += _short(times if path.is_line else at[0])
        ys += _short(at[0] if path.is_line else at[1])
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


def _short(values: np.ndarray) -> list[float | None]:
    """Four digits are more than a screen shows."""
    return [float(f"{x:.4g}") if math.isfinite(x) else None for x in values.tolist()]
