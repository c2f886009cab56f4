"""The goal of `tn.ease`."""

import dataclasses
from collections.abc import Sequence

from .front import allowance, Front, NEAR, Point


@dataclasses.dataclass(frozen=True)
class Goal:
    """A number of evaluations, a loss, or neither, which is the whole front."""

    nfe: float | int | None
    rtol: float | int | None
    atol: float | int | None

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


def message(points: Sequence[Point], goal: Goal) -> str:
    """Whether the goal was reached."""
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
