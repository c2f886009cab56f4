"""What went wrong in some steps, and why."""

from collections.abc import Callable
from typing import Any

import numpy as np


# A loss that has grown to that many times its first size does not come back.
DIVERGED = 1e4


class TrainingFailed(RuntimeError):
    """Training cannot go on. The message names the step, the samples and a likely cause."""

    def __init__(self, message: str, step: int):
        super().__init__(message)
        self.step = step


class FailureCheck:
    """Looks at the records of steps, and raises if one of them failed.

    **Arguments:**

    - `num_steps`: how many there are in all.
    - `first_loss`: before the first step.
    - `indices`: tells which samples a step is made on.
    - `place`: where checkpoints are.
    - `penalty_known`: whether the penalty has a value; if not, it is NaN in good steps, too.
    """

    def __init__(
        self,
        num_steps: int,
        first_loss: float,
        indices: Callable[[int], Any],
        place: Any,
        *,
        penalty_known: bool = True,
    ):
        self.num_steps, self.indices, self.place = num_steps, indices, place
        self.penalty_known = penalty_known
        size = abs(first_loss) if np.isfinite(first_loss) else 0.0
        self.bound = DIVERGED * max(1.0, size)

    def __call__(self, records: Any, first_step: int) -> None:
        """Check the records of the steps from `first_step` on."""
        finite = np.isfinite(records.loss)
        if self.penalty_known:
            finite &= np.isfinite(records.penalty)
        wrong = ~finite | ~np.isfinite(records.gradient) | (records.failed > 0)
        wrong |= records.loss > self.bound
        if not wrong.any():
            return
        offset = int(np.argmax(wrong))
        step = first_step + offset
        cause = self._cause(*(float(np.asarray(field)[offset]) for field in records))
        samples = np.asarray(self.indices(step))
        listed = ", ".join(map(str, samples[:5])) + (", ..." if len(samples) > 5 else "")
        raise TrainingFailed(
            f"Step {step} of {self.num_steps} failed on the batch of training samples {listed}: "
            f"{cause}. The last good checkpoint is kept in {self.place}.",
            step,
        )

    def _cause(
        self,
        loss: float,
        penalty: float,
        weight: float,
        nfe: float,
        failed: float,
        gradient: float,
    ) -> str:
        del weight, gradient
        if failed:
            return (
                f"the solver gave up after {nfe:.0f} evaluations; loosen the tolerance, raise "
                "`max_steps` or the weight of the regularizer, lower the learning rate, or train "
                "on a fixed grid"
            )
        if not np.isfinite(loss):
            return f"the loss is {loss}; lower the learning rate, or take more steps on the grid"
        if loss > self.bound:
            return f"the loss has grown to {loss:.3g}; lower the learning rate"
        if self.penalty_known and not np.isfinite(penalty):
            return f"the penalty is {penalty}; lower its order, or use double precision"
        return (
            "the gradient is not finite although the loss is; use double precision, or clip it "
            "with `optimizer.clip`"
        )
