"""The one place where the random keys of a run come from."""

import enum
from typing import Any

import jax.random as jr

from ...registry import one_of


SPLITS = ("train", "test", "valid")


class Stream(enum.IntEnum):
    """The purposes of random numbers. Each has keys of its own, so numbers are never given twice.

    Changing a number changes the results of all runs; new purposes get new numbers.
    """

    MODEL = 0
    TRAINING = 1
    LOSS = 2
    MORE_METRICS = 3
    PENALTIES = 4
    SAMPLES = 5
    DENSITY = 6
    SERIES = 7


class Keys:
    """The random keys of a run: functions of its seed, and different for every purpose.

    Evaluations of a run share their noise, whatever the step, the solver and the tolerance: a key
    belongs to a split and a batch. Differences between evaluations are then due to the model or to
    the solve, not to chance. The noise still differs between batches, splits, seeds and purposes.

    A key is either folded further or used, never both: `jr.split(key)[i]` is the same key as
    `jr.fold_in(key, i)`.

    **Arguments:**

    - `seed`: that of the run.
    """

    def __init__(self, seed: int):
        self._seed = jr.key(seed)

    @property
    def model(self) -> Any:
        """For the initial weights."""
        return self._of(Stream.MODEL)

    @property
    def training(self) -> Any:
        """For training steps, which fold in their number."""
        return self._of(Stream.TRAINING)

    def loss(self, split: str, batch: int) -> Any:
        """For the loss of a batch in an evaluation."""
        return self._of(Stream.LOSS, _number(split), batch)

    def more_metrics(self, split: str, batch: int) -> Any:
        """For a task's `more_metrics` of a batch in an evaluation."""
        return self._of(Stream.MORE_METRICS, _number(split), batch)

    def penalties(self, split: str) -> Any:
        """For the penalties that an evaluation reports."""
        return self._of(Stream.PENALTIES, _number(split))

    def samples(self, batch: int) -> Any:
        """For a batch of new samples of a flow."""
        return self._of(Stream.SAMPLES, batch)

    def density(self, batch: int) -> Any:
        """For the density of a flow at a batch of points."""
        return self._of(Stream.DENSITY, batch)

    @property
    def series(self) -> Any:
        """For the predictions of a latent ODE that are drawn."""
        return self._of(Stream.SERIES)

    def _of(self, stream: Stream, *numbers: int) -> Any:
        key = self._seed
        for number in (stream, *numbers):
            key = jr.fold_in(key, number)
        return key


def _number(split: str) -> int:
    one_of("split", split, SPLITS)
    return SPLITS.index(split)
