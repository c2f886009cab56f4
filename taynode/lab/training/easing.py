"""A run as the arguments of `tn.ease`."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import optax
from jaxtyping import Array, PyTree

from ...easing import ease, EasingProgress, Front, Point
from ...easing.data import BatchFn, Keys
from ...easing.plan import Phase
from ...easing.run import Run
from ...easing.training import controlled, LossFn, TrainState
from ...models import generated_pairs
from ...registry import REGULARIZERS
from ..config import (
    allowed_loss,
    AllowedLoss,
    ConfigError,
    evaluations,
    positive,
    RegularizerConfig,
)
from ..tasks.base import Samples, Unsolved
from ..tasks.flow_matching import AbstractMatching
from .batch import outcome_of_batch
from .build import make_cast, make_optimizer, make_quadrature, make_regularizer, make_solve
from .failures import TrainingFailed
from .keys import Keys as RunKeys
from .loading import LoadedRun
from .running import data_order


# Validation data is solved in batches of at most so many samples.
VALID_BATCH = 100
# More evaluations than any model needs.
UNLIMITED = 1e9
# What a step of training costs for each sample: an evaluation, and twice as much for its gradient.
EVALUATIONS = 3


@dataclasses.dataclass(frozen=True)
class EaseConfig:
    """What the model of a run is to become.

    - `budget`: the evaluations of a sample to allow, with the solver and tolerance of evaluations.
    - `within`: how much loss to allow above that of the given model, such as 1% or, in units of
        the loss, 0.02. Without a budget and an allowed loss, the whole front is looked for.
    - `regularizer`: the name of the regularizer.
    - `steps`: the number of training steps; half of those of the run by default.
    - `samples`: the number of samples on which evaluations and losses are measured.
    - `seed`: the seed of the order of the data and of all noise.
    """

    budget: float | None = None
    within: str | None = None
    regularizer: str = "r3"
    steps: int | None = None
    samples: int = 500
    seed: int = 0

    def __post_init__(self):
        REGULARIZERS.check(self.regularizer)
        if self.budget is not None and self.within is not None:
            raise ConfigError("Give one of `budget` and `within`: each of them decides the model.")
        if self.budget is not None:
            evaluations("budget", self.budget)
        _ = self.allowed
        if self.steps is not None:
            positive("steps", self.steps)
        positive("samples", self.samples)

    @property
    def allowed(self) -> AllowedLoss | None:
        """How much loss is allowed, if that is what is asked for."""
        return None if self.within is None else allowed_loss(self.within)

    def steps_for(self, run: LoadedRun) -> int:
        """The number of training steps."""
        return max(1, _num_steps(run) // 2) if self.steps is None else self.steps

    def choose(self, front: Front) -> Point | None:
        """The point that is asked for; `None` if that is the whole front, or is not reached."""
        if self.budget is not None:
            try:
                return front.at(nfe=self.budget)
            except ValueError:
                return None
        if self.allowed is not None:
            return front.within(self.allowed.rtol, atol=self.allowed.atol)
        return None


def valid_split(run: LoadedRun) -> str:
    """The split on which points are compared: `"valid"`, or `"train"` if the task has no such data.

    A model that was trained on all training data has seen every part of it. So that is no
    validation data for it, and comparing it with models that have not seen a part would be unfair.
    """
    return "train" if run.data.valid is None else "valid"


def ease_run(
    run: LoadedRun,
    config: EaseConfig,
    path: Path,
    *,
    on_progress: Callable[[EasingProgress], object] | None = None,
) -> Front:
    """Make the model of a run cheap, with the solver, batches and optimizer of the run.

    The same call continues after a kill.

    **Arguments:**

    - `run`: the loaded run.
    - `config`: what is asked for.
    - `path`: the directory of `tn.ease`'s own files.
    - `on_progress`: as for `tn.ease`.
    """
    given, allowed = _Given.of(run, config), config.allowed
    try:
        return ease(
            run.model,
            given.loss_fn,
            given.batches,
            given.valid,
            given.optimizer,
            steps=config.steps_for(run),
            key=RunKeys(config.seed).easing,
            nfe=config.budget,
            within=None if allowed is None else allowed.rtol,
            within_atol=None if allowed is None else allowed.atol,
            evaluate=given.evaluate,
            path=path,
            on_progress=on_progress,
        )
    except ValueError as error:
        raise TrainingFailed(str(error), run.step) from error


def train_on(run: LoadedRun, config: EaseConfig) -> Point:
    """The model after as many further steps without regularization: what easing is compared with.

    The optimizer begins anew, and its learning rate decays, as in a refit.
    """
    return _trained(run, _Given.of(run, config), config, config.steps_for(run))


def reflow(run: LoadedRun, config: EaseConfig) -> Point:
    """A flow that is trained on the straight lines between its own samples and their noise.

    There is one pair for each training sample, drawn with the solver of evaluations. Steps are
    fewer by what the pairs cost, at `EVALUATIONS` for each sample of a step, so that all takes as
    much as further steps of training.
    """
    if not isinstance(run.task, AbstractMatching):
        raise ConfigError(f"Reflow is for tasks of flow matching, got {run.task.name!r}.")
    given, settings = _Given.of(run, config), run.config
    number, size = _num_samples(run.data.train), settings.batch_size
    solve, matching = make_solve(settings.evaluation), run.task.matching
    draw = eqx.filter_jit(lambda key: generated_pairs(run.model, size, solve, key=key))
    keys = RunKeys(config.seed)
    drawn = [draw(keys.reflow(i)) for i in range(-(-number // size))]
    x, noise = (
        jnp.concatenate(parts)[:number] for parts in zip(*(pair[:2] for pair in drawn), strict=True)
    )
    cost = sum(int(solution.stats["nfe"]) for *_, solution in drawn) * size
    steps = max(1, config.steps_for(run) - round(cost / (EVALUATIONS * size)))

    def loss_fn(model, batch, key):
        x, noise = batch
        loss, _ = matching(model, x, noise=noise, key=key)
        # Nothing is penalized.
        stats = {"nfe": jnp.ones((), loss.dtype), "penalty": jnp.zeros((), loss.dtype)}
        return loss, Unsolved(stats)

    batches = _batches(run, config.seed, (x, noise))
    return _trained(run, given._replace(loss_fn=loss_fn, batches=batches), config, steps)


def _trained(run: LoadedRun, given: "_Given", config: EaseConfig, steps: int) -> Point:
    training = Run(*given, Keys(RunKeys(config.seed).easing), steps, None)
    state = TrainState.start(run.model, given.optimizer, controlled(0.0))
    phase = Phase("refitted", 0, 0, steps, weight=0.0, nfe=UNLIMITED)
    step = 0
    while step < steps:
        state, step = training.train(phase, state, step)
    return training.point(phase.kind, step, state)


class _Given(NamedTuple):
    """The arguments of `tn.ease`, in the order of `taynode.easing.run.Run`."""

    loss_fn: LossFn
    evaluate: LossFn
    batches: BatchFn
    valid: list[PyTree[Array]]
    optimizer: optax.GradientTransformation

    @classmethod
    def of(cls, run: LoadedRun, config: EaseConfig) -> "_Given":
        """With the solver, batches and optimizer of a run."""
        task, settings = run.task, run.config
        penalized = dataclasses.replace(settings, regularizer=RegularizerConfig(config.regularizer))
        solve = make_solve(
            settings.training,
            regularizer=make_regularizer(penalized, task.penalized),
            quadrature=make_quadrature(penalized),
        )
        in_use, cast = make_solve(settings.evaluation), make_cast(settings.evaluation)
        # The loss may depend on the epoch. It is that of the end of the run.
        epoch = jnp.asarray(settings.epochs, jnp.float32)

        def loss_fn(model, batch, key):
            apply = lambda model, batch, key: task.training_loss(model, batch, solve, key, epoch)
            outcome = outcome_of_batch(apply, model, batch, key, joint=settings.joint)
            return outcome.loss, outcome.solution

        def evaluate(model, batch, key):
            apply = lambda model, batch, key: task.loss(model, batch, in_use, key)
            outcome = outcome_of_batch(apply, cast(model), cast(batch), key, joint=False)
            return outcome.loss, outcome.solution

        valid = _in_batches(getattr(run.data, valid_split(run)), config.samples)
        return cls(loss_fn, evaluate, _batches(run, config.seed), valid, _optimizer(run))


def _num_steps(run: LoadedRun) -> int:
    """The number of training steps of a run."""
    return run.config.epochs * _steps_per_epoch(run)


def _steps_per_epoch(run: LoadedRun) -> int:
    return _num_samples(run.data.train) // run.config.batch_size


def _num_samples(data: Samples) -> int:
    return jtu.tree_leaves(data)[0].shape[0]


def _optimizer(run: LoadedRun) -> optax.GradientTransformation:
    """The optimizer of the run, with its initial learning rate."""
    config = dataclasses.replace(run.config.optimizer, schedule="constant", warmup=0)
    optimizer = make_optimizer(config, _num_steps(run), _steps_per_epoch(run))
    if config.weight_decay:
        # The gradient of what the run adds to its loss.
        return optax.chain(optax.add_decayed_weights(config.weight_decay), optimizer)
    return optimizer


def _batches(run: LoadedRun, seed: int, data: Samples | None = None):
    """A function `(step, key) -> batch`. Epochs are counted on from those of the run.

    `data` takes the place of the training data, with as many samples.
    """
    data = run.data.train if data is None else data
    size, per_epoch = run.config.batch_size, _steps_per_epoch(run)
    order = functools.lru_cache(1)(lambda epoch: data_order(seed, epoch, _num_samples(data)))
    take = jax.jit(lambda data, indices: jtu.tree_map(lambda x: x[indices], data))

    def batch(step, key):
        del key
        epoch, place = divmod(step, per_epoch)
        return take(data, order(run.config.epochs + epoch)[place * size : (place + 1) * size])

    return batch


def _in_batches(data: Samples, num_samples: int) -> list[PyTree[Array]]:
    """The first samples in batches of equal size, so that one program serves all of them."""
    count = min(num_samples, _num_samples(data))
    num_batches = -(-count // VALID_BATCH)
    size = count // num_batches
    part = lambda i: jtu.tree_map(lambda x: x[i * size : (i + 1) * size], data)
    return [part(i) for i in range(num_batches)]
