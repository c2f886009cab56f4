"""What training minimizes, with its gradient."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from ..._types import RealScalar, RealScalarLike
from ...groups import grouped_value_and_grad
from ...models import Solve
from ...weights import AbstractWeight
from ..tasks.base import AbstractTask, Samples
from .batch import outcome_of_batch
from .parameter_penalties import half_squares


class Measured(NamedTuple):
    """The numbers of a batch, or of a group of it that a device solves.

    `nfe` and `nfe_most` are the mean over groups and that of the group with the most evaluations.
    """

    loss: RealScalar
    penalty: RealScalar
    weight: RealScalar
    nfe: RealScalar
    failed: Int[Array, ""]
    nfe_most: RealScalar


# Computes the numbers of a batch and the gradient, from a model, the state of the regularizer's
# weight, the epoch and a key.
Gradient: TypeAlias = Callable[
    [eqx.Module, Samples, PyTree[Array], RealScalar, PRNGKeyArray], tuple[Measured, Any]
]


def make_gradient(
    task: AbstractTask,
    solve: Solve,
    weight: AbstractWeight,
    parameter_penalty: Callable[[eqx.Module], RealScalar] | None,
    weight_decay: float,
    *,
    joint: bool,
    mesh: Mesh | None = None,
) -> Gradient:
    """A function that computes the numbers of a batch and the gradient.

    Each device of `mesh` solves a group of the batch, and the objective is the mean over groups. A
    `parameter_penalty` replaces that of the solve.
    """

    def objective(
        model: eqx.Module,
        batch: Samples,
        control: PyTree[Array],
        epoch: RealScalar,
        *,
        key: PRNGKeyArray,
    ) -> tuple[RealScalar, Measured]:
        apply = lambda model, batch, key: task.training_loss(model, batch, solve, key, epoch)
        outcome = outcome_of_batch(apply, model, batch, key, joint=joint)
        loss, stats = outcome.loss, outcome.solution.stats
        if mesh is not None:
            loss = loss * _share(outcome.weight, mesh)
        if parameter_penalty is None:
            penalty = jnp.mean(jnp.asarray(stats.get("penalty", 0.0)))
        else:
            penalty = parameter_penalty(model)
        nfe = jnp.mean(stats["nfe"].astype(penalty.dtype))
        failed = jnp.sum(jnp.invert(dfx.is_okay(outcome.solution.result)).astype(jnp.int32))
        # The product has the dtype of the penalty, not that of the schedule.
        with jax.numpy_dtype_promotion("standard"):
            factor = jnp.asarray(weight(control), penalty.dtype)
            scale = jnp.asarray(weight.normalizer(control), loss.dtype)
        total = (loss + (factor * penalty).astype(loss.dtype)) / scale
        if weight_decay:
            total = total + weight_decay * half_squares(model)
        return total, Measured(loss, penalty, factor, nfe, failed, nfe)

    if mesh is None:
        differentiate = eqx.filter_value_and_grad(objective, has_aux=True)
    else:
        differentiate = grouped_value_and_grad(objective, mesh, has_aux=True)

    def gradient(model, batch, control, epoch, key):
        (_, measured), found = differentiate(model, batch, control, epoch, key=key)
        return (measured if mesh is None else _of_batch(measured)), found

    return gradient


def _share(weight: RealScalarLike, mesh: Mesh) -> RealScalar:
    """The weight of a group beside that of the others; 1 in the mean."""
    weight = jax.lax.stop_gradient(jnp.asarray(weight))
    mean = jax.lax.pmean(weight, mesh.axis_names)
    return jnp.where(mean > 0, weight / jnp.where(mean > 0, mean, 1.0), 1.0)


def _of_batch(groups: Measured) -> Measured:
    """The numbers of a batch from those of its groups, which are along the first axis."""
    loss, penalty, nfe = (jnp.mean(x) for x in (groups.loss, groups.penalty, groups.nfe))
    failed = jnp.sum(groups.failed)
    return Measured(loss, penalty, groups.weight[0], nfe, failed, jnp.max(groups.nfe_most))
