"""One step of training, and one evaluation: pure functions of arrays."""

from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import optax

from ...models import Solve


class TrainState(eqx.Module):
    """All that a step changes. The order of data and all noise follow from `step` and the seed.

    `arrays` are those of the model; the rest of it never changes.
    """

    arrays: Any
    opt_state: Any
    step: Any


class StepRecord(NamedTuple):
    """What is known of a step; the compiled step gives it as one vector, which is quick to fetch.

    `failed` counts samples whose solve failed; `gradient` is the norm of the gradient.
    """

    loss: Any
    penalty: Any
    weight: Any
    nfe: Any
    failed: Any
    gradient: Any


class Sample(NamedTuple):
    """What is known of one sample in an evaluation."""

    loss: Any
    metrics: dict[str, Any]
    nfe: Any
    num_steps: Any
    failed: Any
    weight: Any


def batched_loss(
    task: Any, model: Any, batch: Any, solve: Solve, key: Any, epoch: Any, *, joint: bool
):
    """The loss, mean penalty, evaluations and failures of a batch."""
    apply = lambda batch, key: task.training_loss(model, batch, solve, key, epoch)
    if joint:
        outcome = apply(batch, key)
    else:
        size = jtu.tree_leaves(batch)[0].shape[0]
        each = lambda sample, key: apply(_batch_of_one(sample), key)
        outcome = jax.vmap(each)(batch, jr.split(key, size))
    stats = outcome.solution.stats
    penalty = jnp.mean(jnp.asarray(stats.get("penalty", 0.0)))
    failed = jnp.sum(jnp.invert(_okay(outcome.solution.result)).astype(jnp.int32))
    weight = jnp.broadcast_to(jnp.asarray(outcome.weight, outcome.loss.dtype), outcome.loss.shape)
    # Of a batch without any weight, the loss does not matter.
    total = jnp.sum(weight)
    loss = jnp.sum(weight * outcome.loss) / jnp.where(total > 0, total, 1.0)
    return loss, penalty, jnp.mean(stats["nfe"].astype(penalty.dtype)), failed


def _okay(result: Any) -> Any:
    good = dfx.RESULTS.successful, dfx.RESULTS.event_occurred
    return (result._value == good[0]._value) | (result._value == good[1]._value)


def _batch_of_one(sample: Any) -> Any:
    return jtu.tree_map(lambda x: x[None], sample)


def make_step(
    task: Any,
    static: Any,
    solve: Solve,
    optimizer: optax.GradientTransformation,
    weight: optax.Schedule,
    weight_decay: float,
    *,
    joint: bool,
    batch_size: int,
    steps_per_epoch: int,
    epochs_per_order: int,
):
    """A function `(state, data, order, key) -> (state, record)`, to be compiled by the caller.

    `static` is the part of the model that is not arrays; `order` is that of the samples in some
    epochs, so that nothing goes to the device in most steps.
    """
    steps_per_order = steps_per_epoch * epochs_per_order

    def step(state: TrainState, data: Any, order: Any, key: Any) -> tuple[TrainState, Any]:
        start = state.step % steps_per_order * batch_size
        indices = jax.lax.dynamic_slice_in_dim(order, start, batch_size)
        batch = jtu.tree_map(lambda x: x[indices], data)
        model = eqx.combine(state.arrays, static)
        key = jr.fold_in(key, state.step)
        epoch = state.step.astype(jnp.float32) / steps_per_epoch

        @eqx.filter_value_and_grad(has_aux=True)
        def objective(model):
            loss, penalty, nfe, failed = batched_loss(
                task, model, batch, solve, key, epoch, joint=joint
            )
            # The penalty is scaled in its own type, whatever the schedule computes in.
            with jax.numpy_dtype_promotion("standard"):
                factor = jnp.asarray(weight(state.step), penalty.dtype)
            total = loss + (factor * penalty).astype(loss.dtype)
            if weight_decay:
                weights = jtu.tree_leaves(eqx.filter(model, eqx.is_inexact_array))
                total = total + 0.5 * weight_decay * sum(jnp.sum(w**2) for w in weights)
            return total, (loss, penalty, factor, nfe, failed)

        (_, known), gradient = objective(model)
        record = StepRecord(*known, optax.tree.norm(gradient))
        record = jnp.stack([x.astype(record.loss.dtype) for x in record])
        parameters = eqx.filter(model, eqx.is_inexact_array)
        # optax counts in integers and multiplies them with floating-point numbers.
        with jax.numpy_dtype_promotion("standard"):
            updates, opt_state = optimizer.update(gradient, state.opt_state, parameters)
        arrays = eqx.filter(eqx.apply_updates(model, updates), eqx.is_array)
        return TrainState(arrays, opt_state, state.step + 1), record

    return step


def make_evaluation(task: Any, solve: Solve):
    """A function `(model, batch, key) -> (Sample, penalties)`, over samples, each solved alone."""

    def each(model: Any, batch: Any, key: Any) -> tuple[Sample, Any]:
        outcome = task.loss(model, batch, solve, key)
        stats = outcome.solution.stats
        failed = jnp.invert(_okay(outcome.solution.result))
        weight = jnp.asarray(outcome.weight, outcome.loss.dtype)
        counts = stats["nfe"], stats["num_steps"], failed
        return Sample(outcome.loss, outcome.metrics, *counts, weight), stats.get("penalty")

    return _sample_by_sample(each)


def make_more_metrics(task: Any, solve: Solve):
    """A function `(model, batch, key) -> metrics`: the task's `more_metrics` of each sample."""
    return _sample_by_sample(lambda model, batch, key: task.more_metrics(model, batch, solve, key))


def _sample_by_sample(function: Any):
    """Apply a function of a model, a batch and a key to each sample, with a key of its own."""

    def apply(model: Any, batch: Any, key: Any) -> Any:
        each = lambda sample, key: function(model, _batch_of_one(sample), key)
        size = jtu.tree_leaves(batch)[0].shape[0]
        return jax.vmap(each)(batch, jr.split(key, size))

    return apply
