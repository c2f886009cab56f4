"""How strongly to regularize: the interface."""

import abc
import dataclasses
import math
import numbers
from typing import Any, Generic, TYPE_CHECKING, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Bool, Float, Real


State = TypeVar("State")
if TYPE_CHECKING:
    Measurement: TypeAlias = Real[ArrayLike, "..."]
else:
    # At run time, wrong values get an error of this library, which says what to pass.
    Measurement = Any


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


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, numbers.Real) and math.isfinite(value)


def check_state(state: Any, kind: type) -> None:
    """Raise an error unless a state is that of a weight."""
    if not isinstance(state, kind):
        raise TypeError(
            "`state` must be that of `weight.init()` or of the last `weight.update(...)`, got "
            f"{_brief(state)}."
        )


def check_measurement(name: str, value: Any) -> None:
    """Raise an error unless a measurement is absent, a number or an array."""
    if value is None or eqx.is_array_like(value):
        return
    hints = {
        "nfe": ' Pass `sol.stats["nfe"]`.',
        "penalty": " Of several penalties, pass the sum that the weight multiplies.",
    }
    raise TypeError(
        f"`{name}` must be a number or an array, got {_brief(value)}.{hints.get(name, '')}"
    )


def _brief(value: Any) -> str:
    # All arrays of a solution would hide what is asked for.
    text = repr(value)
    return text if len(text) <= 80 else f"an object of type `{type(value).__name__}`"


def known_values(state: State) -> State:
    """The values of a state, for `status`; an error if they are not those of one state."""
    leaves = jtu.tree_leaves(state)
    if any(isinstance(x, Tracer) for x in leaves):
        raise ValueError("`state` has no values yet. Call `status` outside of `jax.jit`.")
    if any(jnp.ndim(x) for x in leaves):
        raise ValueError(
            "`state` is a batch of states. Pass one of them, such as "
            "`jax.tree.map(lambda x: x[0], state)`."
        )
    return jax.device_get(state)


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
        loss: Measurement | None = None,
        penalty: Measurement | None = None,
    ) -> State:
        """The state after a step of training.

        **Arguments:**

        - `nfe`: evaluations, of one solve or of each sample; their mean counts. Absent, `None` or
            NaN, in steps without a measurement.
        - `loss`: the loss of the step, without the penalty; of several samples their mean counts.
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
