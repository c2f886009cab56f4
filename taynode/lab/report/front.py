"""The page about a run that was made cheap: a front on which one picks a model."""

import json
import shlex
from pathlib import Path
from typing import NamedTuple

from ..files import Json
from ..training.eased import FRONT, PAGE
from .formats import change, fixed, is_number, number, percent, setting
from .front_figure import FIGURE, front_figure, KINDS, SPLITS
from .groups import in_words
from .rendering import as_script, render_page


class Pick(NamedTuple):
    """A point for readers: what it is called, its numbers, and the words that give its model."""

    name: str
    kind: str
    color: str
    nfe: str
    change: str | None
    facts: list[tuple[str, str]]
    file: str
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
        "tolerance": setting(content["tolerance"]) if content["tolerance"] else "",
        "regularizer": in_words(content["regularizer"]),
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
    given = points[0]
    if len(points) == 1 or chosen == 0 or (chosen is None and content["message"]):
        return content["message"] or "Nothing was trained: the steps are too few."
    if chosen is None:
        least = min(p["nfe"] for p in points if is_number(p["nfe"]))
        return (
            f"{len(points)} models of {content['task']}: from {fixed(given['nfe'])} evaluations "
            f"per sample to {fixed(least)} ({change(given['nfe'], least)})."
        )
    best = points[chosen]
    name, show = ("error", percent) if "test_error" in given else ("loss", number)
    before, after = (show(point[f"test_{name}"]) for point in (given, best))
    found = f"{after}, as before" if before == after else f"{after} instead of {before}"
    return (
        f"{content['task']}: {fixed(best['test_nfe'])} evaluations per test sample instead of "
        f"{fixed(given['test_nfe'])} ({change(given['test_nfe'], best['test_nfe'])}), at a test "
        f"{name} of {found}."
    )


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
        point["file"] or path,
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
