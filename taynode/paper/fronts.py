"""Trade-offs of loss and evaluations over weights, with their spread over seeds."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from .chart import Line
from .mnist_sweep import Arm


@dataclasses.dataclass(frozen=True)
class Front:
    """Runs by seed: evaluations and losses of all weights, the unregularized ones first.

    - `weights`: in increasing order, 0 for none.
    - `nfe`, `loss`: `[weight][seed]`.
    """

    weights: list[float]
    nfe: list[list[float]]
    loss: list[list[float]]

    def line(self, label: str, color: int) -> Line:
        """Means as a line, standard deviations as crosses."""
        nfe, loss = ([_moments(x) for x in values] for values in (self.nfe, self.loss))
        return Line(
            [mean for mean, _ in nfe],
            [mean for mean, _ in loss],
            label,
            color,
            x_error=[deviation for _, deviation in nfe],
            y_error=[deviation for _, deviation in loss],
        )

    def at_extra_loss(self, extra: float) -> list[float]:
        """For each seed, the share of evaluations saved for at most so much more loss."""
        saved = []
        for seed in range(min(len(x) for x in self.nfe)):
            bound = self.loss[0][seed] * (1 + extra)
            allowed = [
                nfe[seed]
                for nfe, loss in zip(self.nfe, self.loss, strict=True)
                if loss[seed] <= bound
            ]
            saved.append(1 - min(allowed) / self.nfe[0][seed])
        return saved


def front_of(
    arms: Sequence[Arm], *, loss: str = "train_loss", evaluation: str | None = None
) -> dict[str, Any]:
    """The front of some arms, as plain data."""
    nfe = "test_nfe"
    return dataclasses.asdict(
        Front(
            [arm.weight for arm in arms],
            [arm.values(nfe, evaluation) for arm in arms],
            [arm.values(loss) for arm in arms],
        )
    )


def area_under_front(front: Front) -> list[float]:
    """For each seed, the mean evaluations that losses up to a bound need, relative to none.

    The bound is half as much again as the loss without regularization; for a loss that no weight
    reaches, the evaluations are those of the unregularized model. Lower is better.
    """
    import numpy as np

    areas = []
    for seed in range(min(len(x) for x in front.nfe)):
        nfe = np.array([x[seed] for x in front.nfe])
        loss = np.array([x[seed] for x in front.loss])
        bounds = np.linspace(loss[0], 1.5 * loss[0], 51)
        least = [nfe[loss <= bound * (1 + 1e-12)].min() for bound in bounds]
        areas.append(float(np.mean(least) / nfe[0]))
    return areas


def _moments(values: Sequence[float]) -> tuple[float, float]:
    import numpy as np

    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
