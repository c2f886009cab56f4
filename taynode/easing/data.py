"""Batches as functions of the step."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import jax.random as jr
from jaxtyping import PRNGKeyArray, PyTree


BatchFn: TypeAlias = Callable[[int, PRNGKeyArray], PyTree]


def as_batch_fn(batches: BatchFn | Iterable[PyTree], *, is_resumable: bool) -> BatchFn:
    """A function from the step and a key to a batch."""
    if callable(batches):
        return batches
    if isinstance(batches, list):
        if not batches:
            raise ValueError("`batches` is an empty list.")
        return lambda step, key: batches[step % len(batches)]
    if isinstance(batches, tuple):
        raise TypeError("`batches` is a tuple, which is a single batch: pass `[batch]`.")
    if not isinstance(batches, Iterable):
        raise TypeError(
            "`batches` must be a function `(step, key) -> batch`, a list of batches or an iterable "
            f"of them, got {batches!r}."
        )
    if is_resumable:
        raise ValueError(
            "`path` needs `batches` from which any batch can be drawn again after a kill: a "
            f"function `(step, key) -> batch` or a list, got {type(batches).__name__}."
        )
    return _Iterated(batches)


class _Iterated:
    """The batches of an iterable, again and again."""

    def __init__(self, iterable: Iterable[PyTree]):
        self.iterable, self.iterator = iterable, iter(iterable)

    def __call__(self, step: int, key: PRNGKeyArray) -> PyTree:
        del key
        try:
            return next(self.iterator)
        except StopIteration:
            self.iterator = iter(self.iterable)
        try:
            return next(self.iterator)
        except StopIteration:
            raise ValueError(
                f"`batches` ended at step {step}. Pass a function `(step, key) -> batch`, a list, "
                "or an iterable that can be iterated again."
            ) from None


def as_list(valid: PyTree | list[PyTree]) -> list[PyTree]:
    """Batches of validation data: of a list, or of a single batch."""
    batches = valid if isinstance(valid, list) else [valid]
    if not batches:
        raise ValueError("`valid` is an empty list.")
    return batches


class Keys:
    """The random keys: none is used twice."""

    def __init__(self, key: PRNGKeyArray):
        self._batch, self._loss, self._valid, self.trial = jr.split(key, 4)

    def batch(self, step: int) -> PRNGKeyArray:
        """With which the batch of a step is drawn."""
        return jr.fold_in(self._batch, step)

    def loss(self, step: int) -> PRNGKeyArray:
        """With which the loss of a step is computed."""
        return jr.fold_in(self._loss, step)

    def valid(self, index: int) -> PRNGKeyArray:
        """With which a batch of validation data is evaluated, always the same."""
        return jr.fold_in(self._valid, index)
