"""A step of training, and a measurement: pure functions of arrays."""

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable, TypeAlias

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from .._types import RealScalar, RealScalarLike
from ..weights import Budget, ControlState
from ..weights.controller import LARGEST_ERROR


@runtime_checkable
class HasStatistics(Protocol):
    """A `diffrax.Solution`, or what stands in for one."""

    @property
    def stats(self) -> dict[str, Any]:
        """The evaluations, as `nfe`, and the penalty, as `penalty`."""
        ...

    @property
    def result(self) -> dfx.RESULTS:
        """Whether the solve succeeded."""
        ...


# One solution or several, as any pytree of them.
Solutions: TypeAlias = HasStatistics | PyTree[HasStatistics]
LossFn: TypeAlias = Callable[[PyTree, PyTree, PRNGKeyArray], tuple[RealScalar, Solutions]]

# The controller sees evaluations in units of the budget. So one program serves all budgets.
CONTROLLER = Budget(nfe=1.0)
WANTED = "`loss_fn` must return a loss and the solution of `tn.diffeqsolve(..., regularizer=...)`"


@runtime_checkable
class Optimizer(Protocol):
    """What is used of an `optax.GradientTransformation`."""

    @property
    def init(self) -> Callable[..., Any]:
        """From the parameters to a state."""
        ...

    @property
    def update(self) -> Callable[..., Any]:
        """From gradient, state and parameters to updates and a state."""
        ...


class TrainState(eqx.Module):
    """The values that a step changes.

    `num_failures` counts the steps since the last one that could be applied.
    """

    model: PyTree
    opt_state: PyTree
    control: ControlState
    num_failures: Int[Array, ""]

    @classmethod
    def start(cls, model: PyTree, optimizer: Optimizer, control: ControlState) -> "TrainState":
        """The state of a training that begins."""
        with jax.numpy_dtype_promotion("standard"):
            opt_state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
        return cls(model, opt_state, control, jnp.array(0, int))


class BatchNumbers(eqx.Module):
    """The numbers of a batch: the loss, the penalty and the mean number of evaluations."""

    loss: RealScalar
    penalty: RealScalar
    nfe: Float[Array, ""]
    is_solved: Bool[Array, ""]


def controlled(weight: float, excess: float = 1.0) -> ControlState:
    """The state of a controller that begins with a weight.

    `excess` is the number of evaluations with this weight, in units of the budget.
    """
    state = CONTROLLER.init()
    # Each has an array of its own. The evaluations are not yet known.
    number = lambda value: jnp.array(value, state.log_weight.dtype)
    log_weight = math.log(weight) if weight > 0 else -math.inf
    error = min(max(math.log(excess), -LARGEST_ERROR), LARGEST_ERROR)
    return state._replace(
        log_weight=number(log_weight),
        log_first=number(log_weight),
        fell_at=number(log_weight),
        course=number(math.nan),
        error=number(error),
        is_active=jnp.array(True),
        was_active=jnp.array(True),
    )


@eqx.filter_jit
def train_step(
    loss_fn: LossFn,
    optimizer: Optimizer,
    state: TrainState,
    batch: PyTree,
    key: PRNGKeyArray,
    *,
    nfe: RealScalarLike,
    rate: RealScalarLike,
    share: RealScalarLike,
) -> tuple[TrainState, BatchNumbers]:
    """One step, unless its solve fails or its loss or its gradient is not finite.

    **Arguments:**

    - `nfe`: evaluations in units of the budget; NaN if they are not measured in this step.
    - `rate`: what the optimizer's updates are multiplied by.
    - `share`: what the loss is multiplied by, but not the penalty.
    """

    @eqx.filter_value_and_grad(has_aux=True)
    def objective(model: PyTree) -> tuple[RealScalar, BatchNumbers]:
        measured = _measure(loss_fn, model, batch, key)
        weight = CONTROLLER(state.control).astype(measured.penalty.dtype)
        penalty = (weight * measured.penalty).astype(measured.loss.dtype)
        return jnp.asarray(share, measured.loss.dtype) * measured.loss + penalty, measured

    (_, measured), gradient = objective(state.model)
    parameters = eqx.filter(state.model, eqx.is_inexact_array)
    # optax counts in integers and multiplies them with floating-point numbers.
    with jax.numpy_dtype_promotion("standard"):
        updates, opt_state = optimizer.update(gradient, state.opt_state, parameters)
    updates = jtu.tree_map(lambda x: jnp.asarray(rate, x.dtype) * x, updates)
    model = eqx.apply_updates(state.model, updates)
    finite = [jnp.all(jnp.isfinite(x)) for x in jtu.tree_leaves((measured.loss, gradient))]
    applies = measured.is_solved & jnp.all(jnp.stack(finite))
    model, opt_state = _where(applies, (model, opt_state), (state.model, state.opt_state))
    control = CONTROLLER.update(
        state.control, nfe=nfe, loss=measured.loss, penalty=measured.penalty
    )
    num_failures = jnp.where(applies, 0, state.num_failures + 1)
    return TrainState(model, opt_state, control, num_failures), measured


@eqx.filter_jit
def measure(loss_fn: LossFn, model: PyTree, batch: PyTree, key: PRNGKeyArray) -> BatchNumbers:
    """The numbers of a batch."""
    return _measure(loss_fn, model, batch, key, needs_penalty=False)


def _measure(
    loss_fn: LossFn, model: PyTree, batch: PyTree, key: PRNGKeyArray, needs_penalty: bool = True
) -> BatchNumbers:
    found = loss_fn(model, batch, key)
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeError(f"{WANTED}, as a pair, got `{type(found).__name__}`.")
    loss, solutions = found
    is_leaf = lambda x: x is None or _is_solved(x)
    parts = [_of_solution(x, needs_penalty) for x in jtu.tree_leaves(solutions, is_leaf=is_leaf)]
    if not parts:
        raise ValueError(f"{WANTED}, or a pytree of solutions, got none.")
    # The evaluations of several solves are those of a sample that passes through all of them.
    penalty, nfe, okay = (functools.reduce(operator.add, x) for x in zip(*parts, strict=True))
    return BatchNumbers(loss, penalty, nfe, okay == len(parts))


def _is_solved(x: Any) -> bool:
    return isinstance(x, HasStatistics)


def _of_solution(
    solution: Any, needs_penalty: bool
) -> tuple[RealScalar, Float[Array, ""], Int[Array, ""]]:
    """The penalty and the mean evaluations of a solve, and 1 if it succeeded, otherwise 0."""
    stats: dict[str, Any] = solution.stats if _is_solved(solution) else {}
    if "nfe" not in stats or (needs_penalty and "penalty" not in stats):
        what = f"one with the statistics {list(stats)}" if stats else repr(solution)[:80]
        raise ValueError(f"{WANTED}, or a pytree of solutions, got {what}.")
    penalties = [jnp.mean(x) for x in jtu.tree_leaves(stats.get("penalty"))]
    penalty = sum(penalties[1:], penalties[0]) if penalties else jnp.array(jnp.nan)
    nfe = jnp.mean(jnp.asarray(stats["nfe"], CONTROLLER.init().nfe.dtype))
    return penalty, nfe, jnp.all(dfx.is_okay(solution.result)).astype(int)


def _where(condition: Bool[Array, ""], new: PyTree, old: PyTree) -> PyTree:
    """The arrays of one of two pytrees that differ in their arrays only."""
    arrays, rest = eqx.partition(new, eqx.is_array)
    old = eqx.filter(old, eqx.is_array)
    return eqx.combine(jtu.tree_map(lambda x, y: jnp.where(condition, x, y), arrays, old), rest)
