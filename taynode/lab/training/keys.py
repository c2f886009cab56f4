"""The random keys of a run."""

import enum

import jax.random as jr
from jaxtyping import PRNGKeyArray

from ...registry import one_of


SPLITS = ("train", "test", "valid")


class Stream(enum.IntEnum):
    """The purposes of random numbers. Each has keys of its own, so that no key is used twice.

    Changing a number changes the results of all runs. A new purpose gets a new number.
    """

    MODEL = 0
    TRAINING = 1
    LOSS = 2
    MORE_METRICS = 3
    PENALTIES = 4
    SAMPLES = 5
    DENSITY = 6
    SERIES = 7
    PROBE = 8
    EASING = 9
    REFLOW = 10
    QUALITY = 11


class Keys:
    """The random keys of a run. They are functions of its seed and of their purpose.

    In evaluations, a key belongs to a split and a batch. Evaluations at other steps, or with other
    solvers and tolerances, have the same noise, so that they differ by the model or the solve alone
    and not by chance. The noise differs between batches, splits, seeds and purposes.

    A key is either folded further or used, never both: `jr.split(key)[i]` is the same key as
    `jr.fold_in(key, i)`.

    **Arguments:**

    - `seed`: the seed of the run.
    """

    def __init__(self, seed: int):
        self._seed = jr.key(seed)

    @property
    def model(self) -> PRNGKeyArray:
        """For the initial weights."""
        return self._of(Stream.MODEL)

    @property
    def training(self) -> PRNGKeyArray:
        """For training steps, which fold in their number."""
        return self._of(Stream.TRAINING)

    @property
    def probe(self) -> PRNGKeyArray:
        """For measurements of evaluations in training steps, which fold in their number."""
        return self._of(Stream.PROBE)

    @property
    def easing(self) -> PRNGKeyArray:
        """For what is trained after a run: for `tn.ease`, and for training on."""
        return self._of(Stream.EASING)

    def reflow(self, batch: int) -> PRNGKeyArray:
        """For a batch of pairs of noise and samples."""
        return self._of(Stream.REFLOW, batch)

    @property
    def quality(self) -> PRNGKeyArray:
        """For samples that are compared with data."""
        return self._of(Stream.QUALITY)

    def loss(self, split: str, batch: int) -> PRNGKeyArray:
        """For the loss of a batch in an evaluation."""
        return self._of(Stream.LOSS, _number(split), batch)

    def more_metrics(self, split: str, batch: int) -> PRNGKeyArray:
        """For a task's `more_metrics` of a batch in an evaluation."""
        return self._of(Stream.MORE_METRICS, _number(split), batch)

    def penalties(self, split: str) -> PRNGKeyArray:
        """For the penalties that an evaluation reports."""
        return self._of(Stream.PENALTIES, _number(split))

    def samples(self, batch: int) -> PRNGKeyArray:
        """For a batch of new samples of a flow."""
        return self._of(Stream.SAMPLES, batch)

    def density(self, batch: int) -> PRNGKeyArray:
        """For the density of a flow at a batch of points."""
        return self._of(Stream.DENSITY, batch)

    @property
    def series(self) -> PRNGKeyArray:
        """For the predictions of a latent ODE that are drawn."""
        return self._of(Stream.SERIES)

    def _of(self, stream: Stream, *numbers: int) -> PRNGKeyArray:
        key = self._seed
        for number in (stream, *numbers):
            key = jr.fold_in(key, number)
        return key


def _number(split: str) -> int:
    one_of("split", split, SPLITS)
    return SPLITS.index(split)
