"""One step of training, and one evaluation: pure functions of arrays."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Shaped

from ..._types import Rate
from ...models import Solve
from ...weights import AbstractWeight
from ..tasks.base import AbstractTask, Evaluated, Samples
from .batch import sample_by_sample
from .objective import Gradient
from .spectral import with_limited_norms


T = TypeVar("T")
# Measures the evaluations of some samples of a batch, if a measurement is due.
Probe: TypeAlias = Callable[[Bool[Array, ""], eqx.Module, Samples, PRNGKeyArray], Float[Array, ""]]


class TrainState(eqx.Module):
    """The values that a step changes. Data and noise of a step follow from `step` and the seed.

    `arrays` are the arrays of the model. The rest of the model never changes. `control` is the
    state of the regularizer's weight.
    """

    arrays: PyTree[Array]
    opt_state: PyTree[Array]
    step: Int[Array, ""]
    control: PyTree[Array] = ()


class StepKeys(NamedTuple):
    """The random keys of all steps. Each step folds in its number."""

    training: PRNGKeyArray
    probe: PRNGKeyArray


class StepRecord(NamedTuple):
    """The numbers of consecutive steps.

    `nfe` are the evaluations of training, and `nfe_most` those of the device whose part of the
    batch needs most of them. `failed` is the number of samples whose solve failed; `gradient` is
    the norm of the gradient. `probe` are the evaluations of a sample in use, or NaN in steps that
    do not measure them.
    """

    loss: Shaped[np.ndarray, "steps"]
    penalty: Shaped[np.ndarray, "steps"]
    weight: Shaped[np.ndarray, "steps"]
    nfe: Shaped[np.ndarray, "steps"]
    failed: Shaped[np.ndarray, "steps"]
    nfe_most: Shaped[np.ndarray, "steps"]
    gradient: Shaped[np.ndarray, "steps"]
    probe: Shaped[np.ndarray, "steps"]


def make_step(
    static: eqx.Module,
    gradient_of: Gradient,
    optimizer: optax.GradientTransformation,
    weight: AbstractWeight,
    probe: Probe | None,
    spectral_norm: float | None,
    *,
    batch_size: int,
    steps_per_epoch: int,
    epochs_per_order: int,
):
    """A function `(state, data, order, keys) -> (state, record)`, to be compiled by the caller.

    `static` is the part of the model without arrays. `probe` measures the evaluations that `weight`
    follows; a weight that follows none needs no probe. `parameter_penalty` is the penalty, if paths
    have none. `order` is the order of the samples in
    several epochs, so that most steps transfer nothing to the device.
    """
    steps_per_order = steps_per_epoch * epochs_per_order

    def step(
        state: TrainState, data: Samples, order: Int[Array, "samples"], keys: StepKeys
    ) -> tuple[TrainState, Float[Array, "fields"]]:
        start = state.step % steps_per_order * batch_size
        indices = jax.lax.dynamic_slice_in_dim(order, start, batch_size)
        batch = jtu.tree_map(lambda x: x[indices], data)
        model = eqx.combine(state.arrays, static)
        key = jr.fold_in(keys.training, state.step)
        epoch = state.step.astype(jnp.float32) / steps_per_epoch
        known, gradient = gradient_of(model, batch, state.control, epoch, key)
        measured = jnp.full((), jnp.nan)
        if probe is not None:
            probe_key = jr.fold_in(keys.probe, state.step)
            measured = probe(weight.is_due(state.control), model, batch, probe_key)
        control = weight.update(state.control, nfe=measured, loss=known.loss, penalty=known.penalty)
        # The fields of `StepRecord` as one vector, because a single array is quick to fetch.
        record = [*known, optax.tree.norm(gradient), measured]
        record = jnp.stack([x.astype(record[0].dtype) for x in record])
        parameters = eqx.filter(model, eqx.is_inexact_array)
        # optax counts in integers and multiplies them with floating-point numbers.
        with jax.numpy_dtype_promotion("standard"):
            updates, opt_state = optimizer.update(gradient, state.opt_state, parameters)
        model = eqx.apply_updates(model, updates)
        if spectral_norm is not None:
            model = with_limited_norms(model, spectral_norm)
        arrays = eqx.filter(model, eqx.is_array)
        return TrainState(arrays, opt_state, state.step + 1, control), record

    return step


def make_evaluation(
    task: AbstractTask, solve: Solve, *, double: bool = False, mesh: Mesh | None = None
):
    """A function `(model, batch, key) -> (evaluated, penalties)`. Each sample is solved alone.

    `double` and `mesh` are as for `sample_by_sample`.
    """

    def each(model: eqx.Module, batch: Samples, key: PRNGKeyArray) -> tuple[Evaluated, Rate]:
        outcome = task.loss(model, batch, solve, key)
        stats = outcome.solution.stats
        failed = jnp.invert(dfx.is_okay(outcome.solution.result))
        weight = jnp.asarray(outcome.weight, outcome.loss.dtype)
        counts = stats["nfe"], stats["num_steps"], failed
        return Evaluated(outcome.loss, outcome.metrics, *counts, weight), stats.get("penalty")

    return sample_by_sample(each, double=double, mesh=mesh)


def make_more_metrics(
    task: AbstractTask, solve: Solve, *, double: bool = False, mesh: Mesh | None = None
):
    """A function `(model, batch, key) -> metrics`: the task's `more_metrics` of each sample."""
    each = lambda model, batch, key: task.more_metrics(model, batch, solve, key)
    return sample_by_sample(each, double=double, mesh=mesh)
