"""What is trained next, as a function of the points so far."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from .front import Kind, NEAR, Point
from .goal import Goal
from .path import next_weight


# Each point of the path has this share of all steps: the path is there to be refitted.
STEPS_PER_SCOUTED = 1 / 48
# Refits, if no number of evaluations is asked for. The first has half of their steps, and begins at
# a point of the path. The others begin where a refit ended, with a part of the learning rate: a
# large one would undo what was learned, and there are too few steps to learn it again.
MOST_REFITS = 3
SMALL_RATE = 0.3


class Phase(NamedTuple):
    """Steps of training that lead to a point.

    - `kind`: of the point. The learning rate decays if it is `"refitted"`.
    - `start`: the index of the point from which it begins.
    - `first`, `last`: the number of steps before and after it.
    - `weight`: the weight with which it begins, and with which a `"scouted"` point ends, too.
    - `nfe`: the budget of a refit.
    - `rate`: what the learning rate is multiplied by, before it decays.
    """

    kind: Kind
    start: int
    first: int
    last: int
    weight: float
    nfe: float | None = None
    rate: float = 1.0


def next_phase(points: Sequence[Point], goal: Goal, *, steps: int, scale: float) -> Phase | None:
    """The phase after some points, or `None` at the end.

    **Arguments:**

    - `steps`: the number of steps of all phases.
    - `scale`: the weight at which the penalty matters.
    """
    if points[-1].kind != "refitted":
        weight = next_weight(points, goal, scale)
        last = points[-1].step + max(1, round(STEPS_PER_SCOUTED * steps))
        if weight is not None and last < steps:
            return Phase("scouted", len(points) - 1, points[-1].step, last, weight)
    return _refit(points, goal, steps)


def _refit(points: Sequence[Point], goal: Goal, steps: int) -> Phase | None:
    finite = [i for i, p in enumerate(points) if p.is_finite]
    path = [i for i in finite if points[i].kind == "scouted"]
    refits = [i for i in finite if points[i].kind == "refitted"]
    num_refits = 1 if goal.nfe is not None else MOST_REFITS
    num_left = num_refits - sum(p.kind == "refitted" for p in points)
    if num_left == 0 or not path:
        return None
    first = points[-1].step
    num_steps = (steps - first) // (num_left if num_left < num_refits else (num_refits + 1) // 2)
    if num_steps == 0:
        return None
    if goal.nfe is not None:
        nfe = float(goal.nfe)
    elif goal.by_loss:
        nfe = _between(points, goal)
    else:
        least = min(points[i].nfe for i in path)
        nfe = points[0].nfe * (least / points[0].nfe) ** (1 - (num_left - 1) / num_refits)
    scouted = _on_path(points, path, nfe)
    start = _nearest(points, refits, nfe) if refits else scouted
    # On the path the model lags behind the weight, by about one point.
    lagged = points[max(scouted - 1, path[0])].weight
    return Phase(
        kind="refitted",
        start=start,
        first=first,
        last=first + num_steps,
        weight=math.sqrt(lagged * points[start].weight) if refits else lagged,
        nfe=nfe,
        rate=SMALL_RATE if refits else 1.0,
    )


def _on_path(points: Sequence[Point], path: list[int], nfe: float) -> int:
    """The index of the point at which the path comes to a budget to stay there.

    That is the last point before or the first after, whichever is nearer. Behind a sudden fall
    there may be no way back.
    """
    after = list(itertools.takewhile(lambda i: points[i].nfe <= (1 + NEAR) * nfe, reversed(path)))
    before = path[: len(path) - len(after)]
    return _nearest(points, before[-1:] + after[-1:], nfe)


def _nearest(points: Sequence[Point], indices: list[int], nfe: float) -> int:
    """The index of the point whose evaluations are nearest."""
    return min(indices, key=lambda i: abs(math.log(points[i].nfe / nfe)))


def _between(points: Sequence[Point], goal: Goal) -> float:
    """The evaluations between those whose loss is allowed and those whose loss is not.

    Losses on the path have the noise of a learning rate that does not decay. Refits decide.
    """
    limit = points[0].loss + goal.allowed(points[0].loss)
    decided = [p for p in points if p.kind != "scouted" and p.is_finite]
    most = min(p.nfe for p in decided if p.loss <= limit)
    too_few = [p.nfe for p in decided if p.loss > limit and p.nfe < most]
    least = max(too_few) if too_few else min(p.nfe for p in points if p.is_finite)
    return math.sqrt(most * least)
