"""The training of a phase."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from .data import BatchFn, Keys
from .front import Kind, Point
from .plan import Phase
from .progress import EasingProgress
from .training import controlled, CONTROLLER, LossFn, measure, Optimizer, train_step, TrainState


# A refit is measured this often, for its controller, for progress and for the files.
MEASUREMENTS, LEAST_INTERVAL = 50, 10
# So many steps in a row that cannot be applied are an error.
MOST_FAILURES = 20
# The learning rate of a refit rises for this part of it.
WARMUP = 20
# Steps down the penalty alone, which show what it costs.
TRIAL_STEPS, MOST_TRIALS = 8, 12


@dataclasses.dataclass(frozen=True)
class Run:
    """What all phases share; see `tn.ease`."""

    loss_fn: LossFn
    evaluate: LossFn
    batches: BatchFn
    valid: list[PyTree]
    optimizer: Optimizer
    keys: Keys
    steps: int
    on_progress: Callable[[EasingProgress], object] | None

    def scale(self, model: PyTree) -> float:
        """The weight at which the penalty matters.

        The model makes some steps down the penalty alone, which are then forgotten. The scale is
        the change of the loss over the fall of the penalty. It changes with the unit of either, not
        with their offsets, and does not need a gradient of the loss, which may be 0.
        """
        batch = self.batches(0, self.keys.batch(0))
        for weight in (10.0**-i for i in range(MOST_TRIALS)):
            state, course = TrainState.start(model, self.optimizer, controlled(weight)), []
            for _ in range(TRIAL_STEPS + 1):
                state, measured = self._step(state, batch, self.keys.trial, share=0.0)
                course.append((float(measured.loss), float(measured.penalty)))
            loss, penalty = np.array(course).T
            if not penalty[0] > 0:
                raise ValueError(
                    f"`loss_fn` gives a penalty of {penalty[0]:g} for the given model. `tn.ease` "
                    "needs a positive one. `tn.Backward()` computes none: use `tn.Sampled()`."
                )
            # Without a step size that suits it, plain gradient descent diverges.
            if np.all(np.isfinite(loss)) and penalty[-1] < penalty[0]:
                return float(np.max(np.abs(loss - loss[0])) / (penalty[0] - penalty[-1])) or 1.0
        raise ValueError(
            f"{TRIAL_STEPS} steps of `optimizer` down the penalty alone do not make it smaller. A "
            "smaller learning rate may help."
        )

    def start(self, phase: Phase, points: Sequence[Point], state: TrainState) -> TrainState:
        """The state at the beginning of a phase; `state` is that after the phase before."""
        if phase.nfe is None:
            return eqx.tree_at(lambda s: s.control, state, controlled(phase.weight))
        point = points[phase.start]
        control = controlled(phase.weight, point.nfe / phase.nfe)
        begun = TrainState.start(point.model, self.optimizer, control)
        return eqx.tree_at(lambda s: s.num_failures, begun, state.num_failures)

    def train(self, phase: Phase, state: TrainState, step: int) -> tuple[TrainState, int]:
        """Train until the next measurement or the end of a phase."""
        last, nfe = phase.last, math.nan
        if phase.nfe is not None:
            last = min(last, step + max(LEAST_INTERVAL, (phase.last - phase.first) // MEASUREMENTS))
            nfe = self._probe(phase.kind, state, step) / phase.nfe
        while step < last:
            rate = _rate(phase, step)
            batch = self.batches(step, self.keys.batch(step))
            state, _ = self._step(state, batch, self.keys.loss(step), nfe=nfe, rate=rate)
            step, nfe = step + 1, math.nan
        if (num_failures := int(state.num_failures)) >= MOST_FAILURES:
            raise ValueError(
                f"The last {num_failures} steps before step {step} could not be applied: their "
                "loss or their gradient is not finite, or their solve failed. Look at `loss_fn` "
                f"with the batch of step {step - 1}; a smaller learning rate or larger `max_steps` "
                "may help."
            )
        return state, step

    def point(self, kind: Kind, step: int, state: TrainState) -> Point:
        """The point of a model: means over all validation data."""
        each = [self._measure(state.model, index) for index in range(len(self.valid))]
        loss, nfe = (float(np.mean(values)) for values in zip(*each, strict=True))
        weight = float(CONTROLLER(state.control))
        self._report(kind, step, nfe, loss, weight)
        return Point(kind, nfe, loss, weight, step, state.model)

    def _probe(self, kind: Kind, state: TrainState, step: int) -> float:
        """The evaluations on the first batch of validation data."""
        loss, nfe = self._measure(state.model, 0)
        self._report(kind, step, nfe, loss, float(CONTROLLER(state.control)))
        return nfe

    def _measure(self, model: PyTree, index: int) -> tuple[float, float]:
        """Loss and evaluations of a batch of validation data; both NaN if its solve fails."""
        measured = measure(self.evaluate, model, self.valid[index], self.keys.valid(index))
        if not measured.is_solved:
            return math.nan, math.nan
        return float(measured.loss), float(measured.nfe)

    def _step(
        self,
        state: TrainState,
        batch: PyTree,
        key: PRNGKeyArray,
        *,
        nfe: float = math.nan,
        rate: float = 1.0,
        share: float = 1.0,
    ):
        # As arrays, because another Python number would be another program.
        numbers = {"nfe": jnp.array(nfe), "rate": jnp.array(rate), "share": jnp.array(share)}
        try:
            return train_step(self.loss_fn, self.optimizer, state, batch, key, **numbers)
        except RuntimeError as error:
            error.add_note(
                "This happened in a step of `tn.ease`. With `throw=False` in the solve of "
                "`loss_fn`, a step whose solve fails is left out instead."
            )
            raise

    def _report(self, kind: Kind, step: int, nfe: float, loss: float, weight: float) -> None:
        if self.on_progress is not None:
            self.on_progress(EasingProgress(step, self.steps, kind, nfe, loss, weight))


def _rate(phase: Phase, step: int) -> float:
    """What the learning rate of a step is multiplied by."""
    num_steps, done = phase.last - phase.first, step - phase.first
    # A new optimizer does not know the scale of the gradients yet, so its steps are small first.
    rise = (done + 1) / num_steps
    if phase.nfe is None:
        return rise if phase.first == 0 else 1.0
    return phase.rate * min(1.0, WARMUP * rise) * 0.5 * (1 + math.cos(math.pi * done / num_steps))
