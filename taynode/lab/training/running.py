"""A run in progress: its state, and how to advance and evaluate it."""

import copy
import dataclasses
import hashlib
import time
from typing import NamedTuple, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from ...weights import AbstractWeight
from ..config import ConfigError, TrainConfig
from ..files import Json
from ..tasks.base import AbstractTask, Data
from .build import (
    make_optimizer,
    make_parameter_penalty,
    make_quadrature,
    make_regularizer,
    make_solve,
    make_weight,
    reported_regularizer,
)
from .devices import check_divisible, everywhere, here, mesh_for, Topology
from .evaluate import Evaluator
from .keys import Keys
from .objective import make_gradient
from .probe import make_probe
from .step import make_step, StepKeys, StepRecord, TrainState


T = TypeVar("T")
VALID_SAMPLES = 5000
# Which model is the best does not depend on errors below this tolerance, and they cost much.
VALID_TOLERANCE = 1e-5
# The order of data is transferred to the device for at least this many steps at a time.
STEPS_PER_ORDER = 100


# A step whose evaluations were measured: its number, its weight, and evaluations per sample.
Adjusted: TypeAlias = tuple[int, float, float]


class Best(NamedTuple):
    """The arrays of the model with the lowest validation loss so far, that loss, and its step."""

    arrays: PyTree[Array]
    loss: float
    step: int


# The contents of a checkpoint. There is a best model only if there is validation data.
Saved: TypeAlias = TrainState | tuple[TrainState, Best]


def data_order(seed: int, epoch: int, num_samples: int) -> np.ndarray:
    """The order of samples in an epoch, which follows from the seed and the epoch alone."""
    return np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(num_samples)


def data_digest(data: Data) -> str:
    """A hash of the data, up to rounding, which differs between machines."""
    known = []
    for leaf in jtu.tree_leaves(data):
        values = np.asarray(leaf)
        known.append((values.shape, f"{values.mean(dtype=float):.5g}", f"{values.std():.5g}"))
    return hashlib.sha256(repr(known).encode()).hexdigest()[:12]


def on_device(data: Data, config: TrainConfig) -> Data:
    """The data that a run uses, as arrays of its precision."""
    train = jtu.tree_map(lambda x: x[: config.train_samples], data.train)
    cast = lambda x: x.astype(config.precision) if np.issubdtype(x.dtype, np.floating) else x
    return jtu.tree_map(lambda x: jnp.asarray(cast(np.asarray(x))), data._replace(train=train))


def prepare(task: AbstractTask, config: TrainConfig) -> None:
    """Tell a task the settings that its data and its model depend on."""
    if config.augment and not task.can_augment:
        raise ConfigError(
            f"`augment` is for classifiers and latent ODEs, and {task.name} is another task."
        )
    task.scale, task.augment = config.scale, config.augment


def new_model(config: TrainConfig, task: AbstractTask, key: PRNGKeyArray) -> eqx.Module:
    """An untrained model, in the precision of the run."""
    cast = lambda x: x.astype(config.precision) if eqx.is_inexact_array(x) else x
    return jtu.tree_map(cast, task.model(key))


def first_state(
    arrays: PyTree[Array], optimizer: optax.GradientTransformation, weight: AbstractWeight
) -> TrainState:
    """The state before the first step."""
    opt_state = optimizer.init(eqx.filter(arrays, eqx.is_inexact_array))
    return TrainState(arrays, opt_state, jnp.zeros((), jnp.int32), weight.init())


def final_arrays(*, validates: bool) -> str:
    """The path of the final model's arrays within a `Saved`."""
    return "[1].arrays" if validates else ".arrays"


class Training:
    """The state of a run, and how to advance and evaluate it."""

    def __init__(self, config: TrainConfig, task: AbstractTask, devices: int | None = None):
        self.config, self.task = config, task
        if config.needs_x64 and not jax.config.read("jax_enable_x64"):
            raise ConfigError(
                "Double precision, which `precision` or the tolerance of `evaluation` asks for, "
                'needs `jax.config.update("jax_enable_x64", True)` before anything else.'
            )
        self.mesh = mesh_for(devices)
        self.topology = Topology.of(self.mesh)
        check_divisible(config, self.topology.devices)
        prepare(task, config)
        data = task.load()
        self.data_digest = data_digest(data)
        data = everywhere(on_device(data, config), self.mesh)
        self.train_data, self.test_data, self.valid_data = data
        self.num_samples = jtu.tree_leaves(self.train_data)[0].shape[0]
        if config.batch_size > self.num_samples:
            raise ConfigError(
                f"`batch_size` must be at most {self.num_samples}, the number of training samples, "
                f"got {config.batch_size}."
            )
        self.steps_per_epoch = self.num_samples // config.batch_size
        self.num_steps = config.epochs * self.steps_per_epoch
        self.epochs_per_order = -(-STEPS_PER_ORDER // self.steps_per_epoch)
        self.evaluate_at = sorted(
            {
                round(i * self.num_steps / config.num_evaluations)
                for i in range(config.num_evaluations + 1)
            }
        )
        self.train_seconds = 0.0
        self.compile_seconds = 0.0
        # The evaluations of all steps, per sample or of joint solves: the mean over devices, and
        # those of the device that needs most of them in each step, for which the others wait.
        self.training_nfe = 0.0
        self.training_nfe_most = 0.0
        self.course: list[Adjusted] = []
        self._order = (-1, jnp.zeros(0, jnp.int32))

        self.keys = Keys(config.seed)
        self.step_keys = everywhere(StepKeys(self.keys.training, self.keys.probe), self.mesh)
        optimizer = make_optimizer(config.optimizer, self.num_steps, self.steps_per_epoch)
        arrays, self.static = eqx.partition(new_model(config, task, self.keys.model), eqx.is_array)
        self.weight = make_weight(config.regularizer, self.num_steps)
        self.state = everywhere(first_state(arrays, optimizer, self.weight), self.mesh)
        arrays = self.state.arrays
        self.best = None if self.valid_data is None else Best(_copy(arrays), np.inf, 0)
        solve = make_solve(
            config.training,
            regularizer=make_regularizer(config, task.penalized),
            quadrature=make_quadrature(config),
            steer=config.steer,
        )
        gradient_of = make_gradient(
            task,
            solve,
            self.weight,
            make_parameter_penalty(config),
            config.optimizer.weight_decay,
            joint=config.joint,
            mesh=self.mesh,
        )
        probe = None
        if config.regularizer.is_controlled:
            probe = make_probe(task, config.training, config.evaluation, mesh=self.mesh)
        step = make_step(
            self.static,
            gradient_of,
            optimizer,
            self.weight,
            probe,
            config.spectral_norm,
            batch_size=config.batch_size,
            steps_per_epoch=self.steps_per_epoch,
            epochs_per_order=self.epochs_per_order,
        )
        same = None if self.mesh is None else NamedSharding(self.mesh, PartitionSpec())
        self.compiled = jax.jit(step, donate_argnums=0, out_shardings=same)
        self.evaluator = self._evaluator(self.mesh)
        self.validator = self._validator(self.mesh)

    def _validator(self, mesh: Mesh | None) -> Evaluator:
        solve = self.config.evaluation
        rtol, atol = (max(x, VALID_TOLERANCE) for x in (solve.rtol, solve.atol))
        if (rtol, atol) == (solve.rtol, solve.atol):
            return self.evaluator
        loose = dataclasses.replace(solve, rtol=rtol, atol=atol)
        return Evaluator(self.task, loose, seed=self.config.seed, mesh=mesh)

    def _evaluator(self, mesh: Mesh | None) -> Evaluator:
        config, task = self.config, self.task
        regularizer = reported_regularizer(config, task.penalized)
        seed = config.seed
        return Evaluator(task, config.evaluation, seed=seed, regularizer=regularizer, mesh=mesh)

    @property
    def model(self) -> eqx.Module:
        """The current model."""
        return eqx.combine(self.state.arrays, self.static)

    @property
    def final_model(self) -> eqx.Module:
        """The result of training: the best model if there is validation data, or the last one."""
        return self.model if self.best is None else eqx.combine(self.best.arrays, self.static)

    def on_one_device(self) -> "Training":
        """The same run, as far as its models and data are concerned, on one device."""
        if self.mesh is None:
            return self
        one = copy.copy(self)
        one.mesh, one.state, one.best = None, here(self.state), here(self.best)
        one.train_data, one.test_data, one.valid_data = here(
            (self.train_data, self.test_data, self.valid_data)
        )
        one.evaluator = self._evaluator(None)
        return one

    @property
    def saved(self) -> Saved:
        """The contents of a checkpoint, from which a run continues."""
        return self.state if self.best is None else (self.state, self.best)

    @saved.setter
    def saved(self, saved: Saved) -> None:
        self.state, self.best = (saved, None) if isinstance(saved, TrainState) else saved

    def order(self, step: int) -> Int[Array, "samples"]:
        """The order of samples in several epochs, that of a step among them, on the device."""
        first = step // self.steps_per_epoch // self.epochs_per_order * self.epochs_per_order
        if self._order[0] != first:
            used = self.steps_per_epoch * self.config.batch_size
            epochs = range(first, first + self.epochs_per_order)
            orders = [data_order(self.config.seed, i, self.num_samples)[:used] for i in epochs]
            order = np.concatenate(orders).astype(np.int32)
            self._order = first, everywhere(jax.device_put(order), self.mesh)
        return self._order[1]

    def indices(self, step: int) -> np.ndarray:
        """The indices of the training samples of a step."""
        steps_per_order = self.steps_per_epoch * self.epochs_per_order
        start = step % steps_per_order * self.config.batch_size
        return np.asarray(self.order(step))[start : start + self.config.batch_size]

    def advance(self, step: int, count: int) -> tuple[StepRecord, float]:
        """Make steps, and return their records and the time that they took."""
        records = []
        start = time.perf_counter()
        for current in range(step, step + count):
            order = self.order(current)
            self.state, record = self.compiled(self.state, self.train_data, order, self.step_keys)
            records.append(record)
        table = np.stack(jax.device_get(records))
        seconds = time.perf_counter() - start
        self.train_seconds += seconds
        record = StepRecord(*table.T)
        # One by one, so that the sum does not depend on how steps are grouped.
        for mean, most in zip(record.nfe, record.nfe_most, strict=True):
            self.training_nfe += float(mean)
            self.training_nfe_most += float(most)
        for i in np.flatnonzero(np.isfinite(record.probe)):
            measured = step + int(i), float(record.weight[i]), float(record.probe[i])
            self.course.append(measured)
        return record, seconds

    def warm_up(self) -> None:
        """Compile the step by making one that is discarded, to measure the time of compilation."""
        start = time.perf_counter()
        state = _copy(self.state)
        out = self.compiled(state, self.train_data, self.order(0), self.step_keys)
        jax.block_until_ready(out)
        self.compile_seconds += time.perf_counter() - start

    def row(self, step: int) -> Json:
        """Evaluate, and return a row of the metrics."""
        evaluator, config, last = self.evaluator, self.config, step == self.num_steps
        count = config.final_samples if last else config.eval_samples
        validation = self._validate(step)
        model = self.final_model if last else self.model
        reports = {
            "train": evaluator.report(model, self.train_data, count, split="train"),
            "test": evaluator.report(model, self.test_data, count, split="test"),
        }
        flat = {f"{split}_{k}": v for split, report in reports.items() for k, v in report.items()}
        return {
            "step": step,
            "epoch": step / self.steps_per_epoch,
            "seed": config.seed,
            **flat,
            **validation,
            **evaluator.penalties(model, self.test_data, split="test"),
            "weight": float(np.asarray(self.weight(here(self.state.control)))),
            **self._control(),
            "training_nfe": self.training_nfe,
            **self._groups(),
            "train_seconds": self.train_seconds,
            "seconds_per_step": self.train_seconds / step if step else None,
            "compile_seconds": self.compile_seconds,
            "forward_seconds": evaluator.forward_seconds(model, self.test_data, split="test"),
        }

    def _groups(self) -> Json:
        """On how many devices a run is, and how much more the last of them has to do."""
        if self.mesh is None:
            return {}
        return {"devices": self.topology.devices, "training_nfe_most": self.training_nfe_most}

    def _control(self) -> Json:
        """The status of a weight that follows measurements, and its course since the last row."""
        if not self.config.regularizer.is_controlled:
            return {}
        status = self.weight.status(here(self.state.control))
        course, self.course = self.course, []
        return {"control": status.name, "control_message": status.message, "course": course}

    def _validate(self, step: int) -> Json:
        """Keep the model if it is the best so far, and return the validation metrics."""
        if self.best is None:
            return {}
        loss = self.validator.loss(self.model, self.valid_data, VALID_SAMPLES, split="valid")
        if loss < self.best.loss:
            self.best = Best(_copy(self.state.arrays), loss, step)
        return {"valid_loss": loss, "best_step": self.best.step}


def _copy(state: T) -> T:
    """A copy of arrays. The next step donates the buffers of the original."""
    return jtu.tree_map(jnp.copy, state)
