"""What evaluations cost in loss: models from a given one to the cheapest that was reached."""

import dataclasses
import math
from typing import Any, Literal, TypeAlias

from jaxtyping import PyTree


Kind: TypeAlias = Literal["given", "scouted", "refitted"]

# A budget counts as reached if the evaluations exceed it by no more than this share. They come in
# steps of the solver, so they cannot be set exactly.
NEAR = 0.05


@dataclasses.dataclass(frozen=True)
class Point:
    """A model, its evaluations and its loss.

    - `kind`: `"given"`, `"scouted"` while the weight rose, or `"refitted"` with a decaying learning
        rate.
    - `nfe`: the mean number of evaluations on validation data.
    - `loss`: the mean loss on validation data, without the penalty.
    - `weight`: the weight of the penalty at the end of its training.
    - `step`: the number of steps that `tn.ease` had made.
    - `model`: the model.
    """

    kind: Kind
    nfe: float
    loss: float
    weight: float
    step: int
    model: PyTree = dataclasses.field(repr=False)

    @property
    def is_finite(self) -> bool:
        """Whether the solves succeeded and the loss is a number."""
        return math.isfinite(self.nfe) and math.isfinite(self.loss)


@dataclasses.dataclass(frozen=True)
class Front:
    """The result of `tn.ease`, to be printed, plotted and picked from.

    - `points`: all points in the order in which they were found; the first is the given model.
    - `message`: whether the goal was reached.

    Points are picked by their evaluations and losses on validation data.
    """

    points: tuple[Point, ...]
    message: str = ""

    @property
    def given(self) -> Point:
        """The given model."""
        return self.points[0]

    def within(self, rtol: float | int = 0.01, *, atol: float | int = 0.0) -> Point:
        """The cheapest point whose loss is near that of the given model.

        **Arguments:**

        - `rtol`, `atol`: the loss may be `rtol * |loss of the given model| + atol` above that of
            the given model. A loss whose zero means nothing, such as a density's in nats, needs
            `rtol=0` and an `atol`.
        """
        limit = self.given.loss + allowance(self.given.loss, rtol, atol)
        return min((p for p in self._finite if p.loss <= limit), key=lambda p: (p.nfe, p.loss))

    def at(self, *, nfe: float | int) -> Point:
        """The point of the least loss with at most `nfe` evaluations, or up to 5 % more."""
        affordable = [p for p in self._finite if p.nfe <= (1 + NEAR) * nfe]
        if not affordable:
            raise ValueError(
                f"No point has {nfe:g} evaluations or fewer. The least that was reached is "
                f"{self.least_nfe:.4g}."
            )
        return min(affordable, key=lambda p: (p.loss, p.nfe))

    @property
    def least_nfe(self) -> float:
        """The least evaluations that were reached."""
        return min(p.nfe for p in self._finite)

    @property
    def _finite(self) -> list[Point]:
        return [p for p in self.points if p.is_finite]

    def plot(self, ax: Any = None) -> Any:
        """Plot losses against evaluations with matplotlib; the axes.

        **Arguments:**

        - `ax`: matplotlib's axes; those of a new figure by default.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        for kind, marker in (("scouted", "."), ("refitted", "o"), ("given", "s")):
            points = sorted((p for p in self._finite if p.kind == kind), key=lambda p: p.nfe)
            if points:
                line = "-" if kind == "scouted" else ""
                nfe, loss = [p.nfe for p in points], [p.loss for p in points]
                ax.plot(nfe, loss, marker=marker, linestyle=line, label=kind)
        ax.set_xlabel("evaluations")
        ax.set_ylabel("validation loss")
        ax.legend()
        return ax

    def __str__(self) -> str:
        rows = [f"{'':10}{'evaluations':>12}{'validation loss':>17}{'weight':>10}{'step':>9}"]
        rows += [
            f"{p.kind:10}{p.nfe:12.2f}{p.loss:17.5g}{p.weight:10.3g}{p.step:9d}"
            for p in self.points
        ]
        return "\n".join([*rows, self.message] if self.message else rows)


def allowance(reference: float, rtol: float | int, atol: float | int) -> float:
    """How much a loss may be above a reference."""
    if rtol < 0 or atol < 0:
        raise ValueError(f"`rtol` and `atol` must not be negative, got {rtol} and {atol}.")
    return rtol * abs(reference) + atol
