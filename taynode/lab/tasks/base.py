"""The interface of a task: data, a model, a loss, and default settings."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypeAlias

import diffrax as dfx
import equinox as eqx
import numpy as np
from jaxtyping import Array, ArrayLike, PRNGKeyArray, PyTree, Shaped

from ..._types import Arrays, Rate, RealScalar, RealScalarLike
from ...models import Solve
from ..config import SolveConfig, TrainConfig
from ..data.split import Split


# Samples along the first axis of every leaf.
Samples: TypeAlias = PyTree[Shaped[ArrayLike, "num ..."]]


class Unsolved(eqx.Module):
    """Stands in for a solution where training makes no solve, as in flow matching.

    - `stats`: `nfe` and, if there is a regularizer, `penalty`.
    """

    stats: dict[str, Rate]
    result: dfx.RESULTS = eqx.field(default_factory=lambda: dfx.RESULTS.successful)


class Outcome(NamedTuple):
    """The result of a model on a batch.

    - `loss`: the mean over the batch, without any penalty.
    - `solution`: the result of `solve(...)`. The training loop adds its penalty to the loss.
    - `metrics`: further means over the batch, such as `{"error": ...}`.
    - `weight`: the weight of the batch in means over several batches, such as its number of
        observations.
    """

    loss: RealScalar
    solution: dfx.Solution | Unsolved
    metrics: dict[str, RealScalar]
    weight: RealScalarLike = 1.0


class Evaluated(NamedTuple):
    """The numbers of each sample in an evaluation."""

    loss: Shaped[Array | np.ndarray, "num"]
    metrics: Mapping[str, Shaped[Array | np.ndarray, "num"]]
    nfe: Shaped[Array | np.ndarray, "num"]
    num_steps: Shaped[Array | np.ndarray, "num"]
    failed: Shaped[Array | np.ndarray, "num"]
    weight: Shaped[Array | np.ndarray, "num"]


class Batch(NamedTuple):
    """Inputs and labels, with samples along the first axis."""

    inputs: Samples
    labels: Shaped[Array | np.ndarray, "num ..."]


class Data(NamedTuple):
    """Training, test and validation data: pytrees of arrays with samples along the first axis.

    With validation data, the last evaluation is that of the model with the lowest validation loss.
    """

    train: Samples
    test: Samples
    valid: Samples | None = None


def as_data(split: Split) -> Data:
    """The data of a loader of `taynode.lab.data`, as pytrees."""
    return Data(*(Batch(part.inputs, part.labels) for part in (split.train, split.test)))


class AbstractTask(abc.ABC):
    """A task for the training loop.

    One of your own has a `name` and four methods; see `examples/own_task.py`.
    """

    name: ClassVar[str]
    description: ClassVar[str] = ""
    # The scale of the run. The data and the model may depend on it.
    scale: str = "laptop"
    # The number of zeros that the model appends to its states, for tasks that can do it.
    augment: int = 0
    can_augment: ClassVar[bool] = False
    # A remark on the data that is shown with all results. `load` may set it.
    data_label: str = ""
    # Whether `model` depends on values that `load` sets, such as the number of channels. If so, a
    # trained model cannot be loaded without the data.
    model_needs_data: ClassVar[bool] = False

    @abc.abstractmethod
    def defaults(self, scale: str) -> TrainConfig:
        """Settings for a scale: `smoke` (seconds), `laptop` (minutes) or `paper`."""

    def settings(self, scale: str, solve: SolveConfig, **changes: Any) -> TrainConfig:
        """Settings with one solve in training and in evaluations, changed by keyword."""
        same = TrainConfig(self.name, scale, training=solve, evaluation=solve)
        return dataclasses.replace(same, **changes)

    @abc.abstractmethod
    def load(self) -> Data:
        """The data."""

    @abc.abstractmethod
    def model(self, key: PRNGKeyArray) -> eqx.Module:
        """A new model."""

    @abc.abstractmethod
    def loss(self, model: eqx.Module, batch: Samples, solve: Solve, key: PRNGKeyArray) -> Outcome:
        """Apply the model to a batch, with `solve(vector_field, y0, key=key)` as its solve."""

    def training_loss(
        self,
        model: eqx.Module,
        batch: Samples,
        solve: Solve,
        key: PRNGKeyArray,
        epoch: RealScalarLike,
    ) -> Outcome:
        """The outcome in training, which may depend on the epoch; that of `loss` by default."""
        del epoch
        return self.loss(model, batch, solve, key)

    def penalized(self, y: Arrays) -> Arrays:
        """The part of the solver's state that is regularized; all of it by default."""
        return y

    def more_metrics(
        self, model: eqx.Module, batch: Samples, solve: Solve, key: PRNGKeyArray
    ) -> dict[str, Array]:
        """Further metrics of a batch that are computed in evaluations only; none by default.

        `key` is not that of `loss`.
        """
        del model, batch, solve, key
        return {}

    def summaries(self, samples: Evaluated) -> dict[str, float]:
        """Numbers of all samples of an evaluation together that are not means; none by default."""
        del samples
        return {}
