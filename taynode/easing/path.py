"""The path along which the weight rises and the model follows."""

import math
from collections.abc import Sequence

from .front import Point
from .goal import Goal


# A path has no more points than this.
MOST_SCOUTED = 12
# The first weight of the path, in units of the weight at which the penalty matters.
FIRST_SHARE = 0.01
# From point to point the weight rises by such a factor that the evaluations fall by about a tenth.
WANTED_FALL = 0.1
LEAST_RISE, MOST_RISE = 1.5, 4.0
# The path ends if the evaluations fall by less than this while the weight rises by three decades.
LEAST_FALL, PATIENCE = 0.02, 1e3
# The loss on the path may rise by so many times what is allowed: refitting lowers it.
SLACK = 3.0


def next_weight(points: Sequence[Point], goal: Goal, scale: float) -> float | None:
    """The next weight of the path, or `None` at its end."""
    path = points[1:]
    if not path:
        return FIRST_SHARE * scale
    last = path[-1]
    if len(path) == MOST_SCOUTED or not last.is_finite:
        return None
    if goal.nfe is not None and last.nfe <= goal.nfe:
        return None
    if goal.by_loss and _is_lost(points[0], path, goal):
        return None
    fell = max(i for i in range(len(path)) if i == 0 or _fall(points[i], path[i]) > LEAST_FALL)
    if last.weight > PATIENCE * path[fell].weight:
        return None
    rise = last.weight / path[-2].weight if len(path) > 1 else MOST_RISE
    fall = max(_fall(points[-2], last), LEAST_FALL)
    rise **= min(max(WANTED_FALL / fall, 0.5), 2.0)
    return last.weight * min(max(rise, LEAST_RISE), MOST_RISE)


def _fall(before: Point, after: Point) -> float:
    """How much the evaluations fell, relatively."""
    return math.log(before.nfe / after.nfe)


def _is_lost(given: Point, path: Sequence[Point], goal: Goal) -> bool:
    """Whether the loss is so large that no refit would bring it to what is allowed."""
    # The first weights hardly matter, so they show what the learning rate alone does to the loss.
    noise = max(0.0, *(p.loss - given.loss for p in path[:2]))
    # One point may be bad by chance.
    rise = min(p.loss - given.loss for p in path[-2:])
    return len(path) > 2 and rise > SLACK * (goal.allowed(given.loss) + noise)
