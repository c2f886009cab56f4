"""What is trained next, as a function of the points so far."""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

from .front import allowance, Front, Kind, NEAR, Point


# The path takes at most a quarter of all steps: its points are there to be refitted.
MOST_SCOUTED = 12
STEPS_PER_SCOUTED = 1 / 48
# The first weight of the path, in units of the weight at which the penalty matters.
FIRST_SHARE = 0.01
# From point to point the weight rises by such a factor that the evaluations fall by about a tenth.
WANTED_FALL = 0.1
LEAST_RISE, MOST_RISE = 1.5, 4.0
# The path ends if the evaluations fall by less than this while the weight rises by three decades.
LEAST_FALL, PATIENCE = 0.02, 1e3
# The loss on the path may be above its limit by this factor: refitting lowers it.
SLACK = 4.0
# Refits, if no number of evaluations is asked for.
MOST_REFITS = 3


@dataclasses.dataclass(frozen=True)
class Goal:
    """What is asked for: a number of evaluations, a loss, or neither, which is the whole front."""

    nfe: float | None
    rtol: float | None
    atol: float | None

    def __post_init__(self):
        if self.nfe is not None and self.by_loss:
            raise ValueError("`nfe` and `within` cannot be combined: pass one of them.")
        if self.nfe is not None and not self.nfe > 0:
            raise ValueError(f"`nfe` must be positive, got {self.nfe}.")
        if self.by_loss and not self.allowed(1.0) > 0:
            raise ValueError("`within` or `within_atol` must be positive.")

    def is_met_by(self, given: Point) -> bool:
        """Whether a model needs no more evaluations than are asked for."""
        return self.nfe is not None and given.nfe <= self.nfe

    @property
    def by_loss(self) -> bool:
        """Whether a loss is asked for."""
        return self.rtol is not None or self.atol is not None

    def allowed(self, reference: float) -> float:
        """How much the loss may be above that of the given model."""
        return allowance(reference, self.rtol or 0.0, self.atol or 0.0)


class Phase(NamedTuple):
    """Steps of training that lead to a point.

    - `kind`: of the point. The learning rate decays if it is `"refitted"`.
    - `start`: the index of the point from which it begins.
    - `first`, `last`: the number of steps before and after it.
    - `weight`: the weight with which it begins, and with which a `"scouted"` point ends, too.
    - `nfe`: the budget of a refit.
    """

    kind: Kind
    start: int
    first: int
    last: int
    weight: float
    nfe: float | None = None


def next_phase(points: Sequence[Point], goal: Goal, *, steps: int, scale: float) -> Phase | None:
    """The phase after some points, or `None` at the end.

    **Arguments:**

    - `steps`: the number of steps of all phases.
    - `scale`: the weight at which the penalty matters.
    """
    if points[-1].kind != "refitted":
        weight = _next_weight(points, goal, scale)
        last = points[-1].step + max(1, round(STEPS_PER_SCOUTED * steps))
        if weight is not None and last < steps:
            return Phase("scouted", len(points) - 1, points[-1].step, last, weight)
    return _refit(points, goal, steps)


def _next_weight(points: Sequence[Point], goal: Goal, scale: float) -> float | None:
    """The next weight of the path, or `None` at its end."""
    path = points[1:]
    if not path:
        return FIRST_SHARE * scale
    last = path[-1]
    if len(path) == MOST_SCOUTED or not last.is_finite:
        return None
    if goal.nfe is not None and last.nfe <= goal.nfe:
        return None
    # The first weight is too small to matter, so the rest of the path is compared with its loss:
    # both have the noise of a learning rate that does not decay.
    if goal.by_loss and last.loss - path[0].loss > SLACK * goal.allowed(points[0].loss):
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


def _refit(points: Sequence[Point], goal: Goal, steps: int) -> Phase | None:
    refits = [p for p in points if p.kind == "refitted"]
    num_refits = 1 if goal.nfe is not None else MOST_REFITS
    num_left = num_refits - len(refits)
    num_steps = (steps - points[-1].step) // max(num_left, 1)
    candidates = [i for i, p in enumerate(points) if p.kind != "given" and p.is_finite]
    if num_left == 0 or num_steps == 0 or not candidates:
        return None
    if goal.nfe is not None:
        nfe = goal.nfe
    elif goal.by_loss:
        nfe = _between(points, goal)
    else:
        least = min(points[i].nfe for i in candidates if points[i].kind == "scouted")
        nfe = points[0].nfe * (least / points[0].nfe) ** ((len(refits) + 1) / num_refits)
    start = min(candidates, key=lambda i: abs(math.log(points[i].nfe / nfe)))
    first = points[-1].step
    return Phase("refitted", start, first, first + num_steps, points[start].weight, nfe)


def _between(points: Sequence[Point], goal: Goal) -> float:
    """The evaluations between those whose loss is allowed and those whose loss is not."""
    given, path = points[0], [p for p in points if p.kind == "scouted" and p.is_finite]
    refits = [p for p in points if p.kind == "refitted" and p.is_finite]
    allowed = goal.allowed(given.loss)
    if not refits:
        return min(p.nfe for p in path if p.loss - path[0].loss <= allowed)
    most = min([given.nfe, *(p.nfe for p in refits if p.loss <= given.loss + allowed)])
    least = min(p.nfe for p in points if p.is_finite)
    too_few = [p.nfe for p in refits if p.loss > given.loss + allowed and p.nfe < most]
    return math.sqrt(most * max([least, *too_few]))


def message(points: Sequence[Point], goal: Goal) -> str:
    """What became of what was asked for."""
    front = Front(tuple(points))
    given = front.given
    if goal.nfe is not None:
        if goal.is_met_by(given):
            return (
                f"The model needs {given.nfe:.4g} evaluations, no more than the budget of "
                f"{goal.nfe:g}: nothing was trained."
            )
        if front.least_nfe > (1 + NEAR) * goal.nfe:
            return (
                f"The budget of {goal.nfe:g} evaluations is not reached: the least is "
                f"{front.least_nfe:.4g}, the model needs {given.nfe:.4g}. More steps, a larger "
                "tolerance, a solver with fewer stages or another regularizer would help."
            )
        best, told = front.at(nfe=goal.nfe), f"The budget of {goal.nfe:g} evaluations is reached"
    elif goal.by_loss:
        best = front.within(goal.rtol or 0.0, atol=goal.atol or 0.0)
        allowed = goal.allowed(given.loss)
        if best is given:
            return f"No cheaper model has a loss of at most {given.loss + allowed:.5g}."
        told = f"The cheapest model with a loss of at most {given.loss + allowed:.5g}"
    else:
        return ""
    return (
        f"{told}: {best.nfe:.4g} evaluations, loss {best.loss:.5g}. The given model: "
        f"{given.nfe:.4g} evaluations, loss {given.loss:.5g}."
    )
