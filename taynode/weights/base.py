"""How strongly to regularize: the interface."""

import abc
import dataclasses
from typing import Generic, TypeAlias, TypeVar

import equinox as eqx
from jaxtyping import Array, ArrayLike, Bool, Float, Real

from .._types import RealScalarLike


State = TypeVar("State")
Measurement: TypeAlias = Real[ArrayLike, "..."]


@dataclasses.dataclass(frozen=True)
class Status:
    """What a weight is doing, for people and programs.

    - `name`: `"fixed"`, or one of the names in `taynode.weights.budget.NAMES`.
    - `message`: a sentence that says it, with numbers and with what helps.
    """

    name: str
    message: str

    def __str__(self) -> str:
        return self.message


class AbstractWeight(eqx.Module, Generic[State]):
    """How strongly to regularize, as a state machine in the style of optax.

    ```python
    state = weight.init()
    for batch in batches:
        # Inside `jax.jit`: the objective is loss + weight(state) * penalty.
        model, loss, penalty, nfe = step(model, batch, weight(state))
        state = weight.update(state, nfe=nfe, loss=loss, penalty=penalty)
    print(weight.status(state))
    ```

    States are pytrees of arrays. They can be jitted, vmapped, donated and checkpointed.
    """

    @abc.abstractmethod
    def init(self) -> State:
        """The state before training."""

    @abc.abstractmethod
    def __call__(self, state: State) -> Float[Array, ""]:
        """The present weight."""

    @abc.abstractmethod
    def update(
        self,
        state: State,
        *,
        nfe: Measurement | None = None,
        loss: RealScalarLike | None = None,
        penalty: RealScalarLike | None = None,
    ) -> State:
        """The state after a step of training.

        **Arguments:**

        - `nfe`: evaluations, of one solve or of each sample; their mean counts. Absent, `None` or
            NaN, in steps without a measurement.
        - `loss`: the loss of the step, without the penalty.
        - `penalty`: the penalty of the step, without the weight.
        """

    @abc.abstractmethod
    def normalizer(self, state: State) -> Float[Array, ""]:
        """The divisor of the objective, so that a large weight does not make it steep.

        `(loss + weight(state) * penalty) / weight.normalizer(state)` is for optimizers such as
        plain gradient descent, whose steps grow with the objective. Others, such as Adam, need no
        normalizer.
        """

    @abc.abstractmethod
    def is_due(self, state: State) -> Bool[Array, ""]:
        """Whether the next `update` can use a measurement of the evaluations.

        It saves measurements that cost something, such as solves with another tolerance than that
        of training: `nfe = jax.lax.cond(weight.is_due(state), measure, lambda: jnp.nan)`.
        """

    @abc.abstractmethod
    def status(self, state: State) -> Status:
        """What the weight is doing. Not for use inside `jax.jit`."""
