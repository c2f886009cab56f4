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
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Shaped

from ..._types import Rate, RealScalar
from ...models import Solve
from ...weights import AbstractWeight
from ..tasks.base import AbstractTask, Evaluated, Outcome, Samples
from .build import in_double
from .parameter_penalties import half_squares
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

    `nfe` are the evaluations of training. `failed` is the number of samples whose solve failed;
    `gradient` is the norm of the gradient. `probe` are the evaluations of a sample in use, or NaN
    in steps that do not measure them.
    """

    loss: Shaped[np.ndarray, "steps"]
    penalty: Shaped[np.ndarray, "steps"]
    weight: Shaped[np.ndarray, "steps"]
    nfe: Shaped[np.ndarray, "steps"]
    failed: Shaped[np.ndarray, "steps"]
    gradient: Shaped[np.ndarray, "steps"]
    probe: Shaped[np.ndarray, "steps"]


def outcome_of_batch(
    loss_fn: Callable[[eqx.Module, Samples, PRNGKeyArray], Outcome],
    model: eqx.Module,
    batch: Samples,
    key: PRNGKeyArray,
    *,
    joint: bool,
) -> Outcome:
    """The outcome of a batch that is solved jointly or sample by sample. Its loss is a mean."""
    apply = loss_fn if joint else _sample_by_sample(loss_fn)
    outcome = apply(model, batch, key)
    weight = jnp.broadcast_to(jnp.asarray(outcome.weight, outcome.loss.dtype), outcome.loss.shape)
    # The loss of a batch without any weight is zero.
    total = jnp.sum(weight)
    loss = jnp.sum(weight * outcome.loss) / jnp.where(total > 0, total, 1.0)
    return outcome._replace(loss=loss)


def _batch_of_one(sample: PyTree[Array]) -> PyTree[Array]:
    return jtu.tree_map(lambda x: x[None], sample)


def make_step(
    task: AbstractTask,
    static: eqx.Module,
    solve: Solve,
    optimizer: optax.GradientTransformation,
    weight: AbstractWeight,
    probe: Probe | None,
    parameter_penalty: Callable[[eqx.Module], RealScalar] | None,
    weight_decay: float,
    spectral_norm: float | None,
    *,
    joint: bool,
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
        training_loss = lambda model, batch, key: task.training_loss(
            model, batch, solve, key, epoch
        )

        @eqx.filter_value_and_grad(has_aux=True)
        def objective(model):
            outcome = outcome_of_batch(training_loss, model, batch, key, joint=joint)
            loss, stats = outcome.loss, outcome.solution.stats
            if parameter_penalty is None:
                penalty = jnp.mean(jnp.asarray(stats.get("penalty", 0.0)))
            else:
                penalty = parameter_penalty(model)
            nfe = jnp.mean(stats["nfe"].astype(penalty.dtype))
            failed = jnp.sum(jnp.invert(dfx.is_okay(outcome.solution.result)).astype(jnp.int32))
            # The product has the dtype of the penalty, not that of the schedule.
            with jax.numpy_dtype_promotion("standard"):
                factor = jnp.asarray(weight(state.control), penalty.dtype)
                scale = jnp.asarray(weight.normalizer(state.control), loss.dtype)
            total = (loss + (factor * penalty).astype(loss.dtype)) / scale
            if weight_decay:
                total = total + weight_decay * half_squares(model)
            return total, (loss, penalty, factor, nfe, failed)

        (_, known), gradient = objective(model)
        loss, penalty, *_ = known
        measured = jnp.full((), jnp.nan)
        if probe is not None:
            probe_key = jr.fold_in(keys.probe, state.step)
            measured = probe(weight.is_due(state.control), model, batch, probe_key)
        control = weight.update(state.control, nfe=measured, loss=loss, penalty=penalty)
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


def make_evaluation(task: AbstractTask, solve: Solve, *, double: bool = False):
    """A function `(model, batch, key) -> (evaluated, penalties)`. Each sample is solved alone.

    With `double`, models and samples of single precision are converted.
    """

    def each(model: eqx.Module, batch: Samples, key: PRNGKeyArray) -> tuple[Evaluated, Rate]:
        outcome = task.loss(model, batch, solve, key)
        stats = outcome.solution.stats
        failed = jnp.invert(dfx.is_okay(outcome.solution.result))
        weight = jnp.asarray(outcome.weight, outcome.loss.dtype)
        counts = stats["nfe"], stats["num_steps"], failed
        return Evaluated(outcome.loss, outcome.metrics, *counts, weight), stats.get("penalty")

    return _sample_by_sample(each, double=double)


def make_more_metrics(task: AbstractTask, solve: Solve, *, double: bool = False):
    """A function `(model, batch, key) -> metrics`: the task's `more_metrics` of each sample."""
    each = lambda model, batch, key: task.more_metrics(model, batch, solve, key)
    return _sample_by_sample(each, double=double)


def _sample_by_sample(
    function: Callable[[eqx.Module, Samples, PRNGKeyArray], T], *, double: bool = False
):
    """Apply a function of a model, a batch and a key to each sample, with a key of its own."""

    def apply(model: eqx.Module, batch: Samples, key: PRNGKeyArray) -> T:
        if double:
            model, batch = in_double((model, batch))
        each = lambda sample, key: function(model, _batch_of_one(sample), key)
        size = jtu.tree_leaves(batch)[0].shape[0]
        return jax.vmap(each)(batch, jr.split(key, size))

    return apply
