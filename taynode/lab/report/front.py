"""The page about a run that was made cheap: a front on which one picks a model."""

import json
import shlex
from pathlib import Path
from typing import NamedTuple

from ..files import Json
from ..training.eased import FRONT, PAGE
from .figures import base_layout, Figure, short
from .formats import change, fixed, is_number, number, percent
from .rendering import as_script, render_page


FIGURE = "front"
SPLITS = {"valid": "Validation", "train": "Training"}
# Kinds of points: a name for readers, the color, the marker and its size. The last lies on top.
KINDS = {
    "scouted": ("on the path", "g0", "circle", 7),
    "refitted": ("refitted", "g1", "circle", 13),
    "given": ("given", "g2", "square", 13),
}


class Pick(NamedTuple):
    """A point for readers: what it is called, its numbers, and the words that give its model."""

    name: str
    kind: str
    color: str
    nfe: str
    change: str | None
    facts: list[tuple[str, str]]
    path: str
    commands: list[tuple[str, str]]


def write_front(directory: Path, task: str | None = None) -> Path:
    """Write the page about an `EasedDirectory`, and return its path.

    `task` is the task as `module:Class`, if it is not built in.
    """
    content = json.loads((directory / FRONT).read_text())
    picks = [_pick(directory.resolve(), content, i, task) for i in range(len(content["points"]))]
    chosen = content["chosen"]
    page = {
        "title": f"{content['task']}, eased",
        "headline": headline(content),
        "content": content,
        "split": SPLITS[content["split"]],
        "picks": picks,
        "chosen": chosen,
        "picked": _first_pick(content["points"]) if chosen is None else chosen,
        "kinds": [(KINDS[kind][0], KINDS[kind][1]) for kind in ("given", "scouted", "refitted")],
        "columns": [name for name, _ in picks[0].facts],
        "figures": as_script({FIGURE: front_figure(content)}),
    }
    return render_page("front.html.j2", page, directory / PAGE)


def headline(content: Json) -> str:
    """What was reached, in a sentence."""
    points, chosen = content["points"], content["chosen"]
    given, split = points[0], SPLITS[content["split"]].lower()
    if len(points) == 1 or chosen == 0 or (chosen is None and content["message"]):
        return content["message"] or "Nothing was trained: the steps are too few."
    if chosen is None:
        least = min(p["nfe"] for p in points if is_number(p["nfe"]))
        return (
            f"{len(points)} models of {content['task']}: from {fixed(given['nfe'])} evaluations "
            f"per sample to {fixed(least)} ({change(given['nfe'], least)})."
        )
    best = points[chosen]
    return (
        f"{content['task']}: {fixed(best['nfe'])} evaluations per sample instead of "
        f"{fixed(given['nfe'])} ({change(given['nfe'], best['nfe'])}), at a {split} loss of "
        f"{number(best['loss'])} instead of {number(given['loss'])}."
    )


def front_figure(content: Json) -> Figure:
    """Losses against evaluations. Points have their indices as identifiers, to be picked by."""
    points, split = content["points"], SPLITS[content["split"]]
    drawn = [i for i, p in enumerate(points) if is_number(p["nfe"]) and is_number(p["loss"])]
    losses = [points[i]["loss"] for i in drawn]
    traces = []
    for kind, (name, color, symbol, size) in KINDS.items():
        chosen = [i for i in drawn if points[i]["kind"] == kind]
        traces.append(
            {
                "type": "scatter",
                # The path in the order in which the weight rose.
                "mode": "lines+markers" if kind == "scouted" else "markers",
                "name": name,
                "ids": [str(i) for i in chosen],
                "x": short(points[i]["nfe"] for i in chosen),
                "y": short(points[i]["loss"] for i in chosen),
                "line": {"color": f"@{color}:0.6", "width": 1.5},
                "marker": {"color": f"@{color}", "symbol": symbol, "size": size},
                "hovertemplate": f"{name}: %{{x:.1f}} evaluations, loss %{{y:.4g}}<extra></extra>",
            }
        )
    # The page moves this ring to the point that is picked.
    ring = {"color": "rgba(0,0,0,0)", "size": 22, "line": {"color": "@ink", "width": 2}}
    none = {"type": "scatter", "mode": "markers", "x": [], "y": [], "hoverinfo": "skip"}
    traces.append(none | {"marker": ring | {"symbol": "circle"}})
    axis: Figure = {}
    # Losses of densities may be negative.
    if min(losses) > 0 and max(losses) > 8 * min(losses):
        axis = {"type": "log", "dtick": "D2", "tickformat": "~g"}
    layout = base_layout("Evaluations per sample", f"{split} loss", yaxis=axis)
    layout["margin"]["l"] = 68
    # A zoom outlives the picking of a point.
    layout["uirevision"] = FIGURE
    if is_number(content["budget"]):
        dotted = {"color": "@muted", "width": 1.5, "dash": "dot"}
        limit = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "line": dotted}
        layout["shapes"] = [limit | {"x0": content["budget"], "x1": content["budget"]}]
    return {"data": traces, "layout": layout}


def _first_pick(points: list[Json]) -> int:
    """The first refitted point, or else the given one."""
    return next((i for i, p in enumerate(points) if p["kind"] == "refitted"), 0)


def _pick(directory: Path, content: Json, index: int, task: str | None) -> Pick:
    points = content["points"]
    point, given = points[index], points[0]
    facts = [
        (f"{SPLITS[content['split']]} loss", number(point["loss"])),
        ("Test loss", number(point.get("test_loss"))),
        ("Test NFE", fixed(point.get("test_nfe"))),
    ]
    if any("test_error" in p for p in points):
        facts.insert(2, ("Test error", percent(point.get("test_error"))))
    facts += [("Weight", number(point["weight"])), ("Step", number(point["step"]))]
    name, color, _, _ = KINDS[point["kind"]]
    path = content["run"] if point["file"] is None else str(directory / point["file"])
    return Pick(
        f"{index}, {name}",
        name,
        color,
        fixed(point["nfe"]),
        change(given["nfe"], point["nfe"]) if index else None,
        facts,
        path,
        [
            ("File" if point["file"] else "Run", path),
            ("Evaluate it", _evaluate(path, task)),
            ("Use it in Python", _python(path, task)),
        ],
    )


def _evaluate(path: str, task: str | None) -> str:
    return shlex.join(["taynode", "evaluate", path, *(["--task", task] if task else [])])


def _python(path: str, task: str | None) -> str:
    if not task:
        return f"from taynode import lab\n\nmodel = lab.load({path!r}).model"
    module, _, name = task.partition(":")
    imports = f"from {module} import {name}\nfrom taynode import lab"
    return f"{imports}\n\nmodel = lab.load({path!r}, task={name}).model"
