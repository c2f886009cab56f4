"""Stop a run whose steps fail, and name the likely cause."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from .step import StepRecord


# Training does not recover from a loss of this many times its first value.
DIVERGED = 1e4


class TrainingFailed(RuntimeError):
    """Training cannot continue. The message names the step, its samples and the likely cause."""

    def __init__(self, message: str, step: int):
        super().__init__(message)
        self.step = step


class FailureCheck:
    """Raises `TrainingFailed` if a step failed.

    **Arguments:**

    - `num_steps`: the number of steps of the whole run.
    - `first_loss`: the loss before the first step.
    - `indices`: maps a step to the indices of its training samples.
    - `place`: the directory of the checkpoints.
    - `penalty_known`: whether the penalty has a value. If not, it is NaN in good steps, too.
    """

    def __init__(
        self,
        num_steps: int,
        first_loss: float,
        indices: Callable[[int], np.ndarray],
        place: Path,
        *,
        penalty_known: bool = True,
    ):
        self.num_steps, self.indices, self.place = num_steps, indices, place
        self.penalty_known = penalty_known
        size = abs(first_loss) if np.isfinite(first_loss) else 0.0
        self.bound = DIVERGED * max(1.0, size)

    def __call__(self, records: StepRecord, first_step: int) -> None:
        """Check consecutive steps, of which `first_step` is the first."""
        finite = np.isfinite(records.loss)
        if self.penalty_known:
            finite &= np.isfinite(records.penalty)
        wrong = ~finite | ~np.isfinite(records.gradient) | (records.failed > 0)
        wrong |= records.loss > self.bound
        if not wrong.any():
            return
        offset = int(np.argmax(wrong))
        step = first_step + offset
        wanted = records.loss, records.penalty, records.nfe, records.failed
        cause = self._cause(*(float(field[offset]) for field in wanted))
        samples = np.asarray(self.indices(step))
        listed = ", ".join(map(str, samples[:5])) + (", ..." if len(samples) > 5 else "")
        raise TrainingFailed(
            f"Step {step} of {self.num_steps} failed on the batch of training samples {listed}: "
            f"{cause}. The last good checkpoint is kept in {self.place}.",
            step,
        )

    def _cause(self, loss: float, penalty: float, nfe: float, failed: float) -> str:
        if failed:
            return (
                f"the solver gave up after {nfe:.0f} evaluations; loosen the tolerance, "
                "raise `max_steps` or the weight of the regularizer, lower the learning rate, or "
                "train on a fixed grid"
            )
        if not np.isfinite(loss):
            return f"the loss is {loss}; lower the learning rate, or take more steps on the grid"
        if loss > self.bound:
            return f"the loss has grown to {loss:.3g}; lower the learning rate"
        if self.penalty_known and not np.isfinite(penalty):
            return f"the penalty is {penalty}; lower its order, or use double precision"
        return (
            "the gradient is not finite although the loss is; use double precision, or clip "
            "gradients with `optimizer.clip`"
        )
