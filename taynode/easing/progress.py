"""Reports of progress."""

import dataclasses

from .front import Kind


@dataclasses.dataclass(frozen=True)
class EasingProgress:
    """How far `tn.ease` is, for people and programs.

    - `step`, `steps`: the steps that were made, and all of them.
    - `kind`: the kind of the point on which it works.
    - `nfe`, `loss`: the evaluations and the loss on the first batch of validation data.
    - `weight`: the weight of the penalty.
    """

    step: int
    steps: int
    kind: Kind
    nfe: float
    loss: float
    weight: float

    def __str__(self) -> str:
        return (
            f"step {self.step} of {self.steps}, {self.kind}: {self.nfe:.4g} evaluations, loss "
            f"{self.loss:.5g}, weight {self.weight:.3g}"
        )
