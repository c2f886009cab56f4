"""Functions of batches: solved jointly, sample by sample, and on several devices."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Key, PRNGKeyArray, PyTree

from ...groups import grouped
from ..tasks.base import Outcome, Samples
from .build import in_double


T = TypeVar("T")


def outcome_of_batch(
    loss_fn: Callable[[eqx.Module, Samples, PRNGKeyArray], Outcome],
    model: eqx.Module,
    batch: Samples,
    key: PRNGKeyArray,
    *,
    joint: bool,
) -> Outcome:
    """The outcome of a batch that is solved jointly or sample by sample.

    Its loss is a mean, and its weight is that of the whole batch.
    """
    apply = loss_fn if joint else sample_by_sample(loss_fn)
    outcome = apply(model, batch, key)
    weight = jnp.broadcast_to(jnp.asarray(outcome.weight, outcome.loss.dtype), outcome.loss.shape)
    # The loss of a batch without any weight is zero.
    total = jnp.sum(weight)
    loss = jnp.sum(weight * outcome.loss) / jnp.where(total > 0, total, 1.0)
    return outcome._replace(loss=loss, weight=total)


def sample_by_sample(
    function: Callable[[eqx.Module, Samples, PRNGKeyArray], T],
    *,
    double: bool = False,
    mesh: Mesh | None = None,
):
    """Apply a function of a model, a batch and a key to each sample, with a key of its own.

    With `double`, models and samples of single precision are converted. Each device of `mesh` has
    its part of the samples, and in the end the results of all.
    """

    def rows(model: eqx.Module, rows: tuple[Samples, Key[Array, "num"]]) -> T:
        return jax.vmap(lambda sample, key: function(model, _batch_of_one(sample), key))(*rows)

    on_devices = rows if mesh is None else grouped(rows, mesh)

    def apply(model: eqx.Module, batch: Samples, key: PRNGKeyArray) -> T:
        if double:
            model, batch = in_double((model, batch))
        size = jtu.tree_leaves(batch)[0].shape[0]
        found = on_devices(model, (batch, jr.split(key, size)))
        if mesh is not None:
            found = jax.lax.with_sharding_constraint(found, NamedSharding(mesh, PartitionSpec()))
        return found

    return apply


def _batch_of_one(sample: PyTree[Array]) -> PyTree[Array]:
    return jtu.tree_map(lambda x: x[None], sample)
