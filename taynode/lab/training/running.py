"""A run in progress: everything that is needed to take its next step."""

import hashlib
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import optax

from ..config import ConfigError, TrainConfig
from ..tasks.base import AbstractTask, Data
from .build import (
    float_dtype,
    make_optimizer,
    make_quadrature,
    make_regularizer,
    make_solve,
    make_weight,
)
from .evaluate import Evaluator
from .keys import Keys
from .step import make_step, StepRecord, TrainState


VALID_SAMPLES = 5000
# The order of data goes to the device at least for that many steps at once.
STEPS_PER_ORDER = 100


class Best(NamedTuple):
    """The model of the lowest loss on the validation set, and when it was."""

    arrays: Any
    loss: float
    step: int


def data_order(seed: int, epoch: int, num_samples: int) -> np.ndarray:
    """The order of samples in an epoch: a function of the seed and the epoch alone."""
    return np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(num_samples)


def data_digest(split: Any) -> str:
    """A hash by which the same data is known, up to rounding, which machines do differently."""
    told = []
    for leaf in jtu.tree_leaves(split):
        values = np.asarray(leaf)
        told.append((values.shape, f"{values.mean(dtype=float):.5g}", f"{values.std():.5g}"))
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def on_device(split: Any, config: TrainConfig) -> Data:
    """The data that a run uses, as arrays of its precision."""

    def put(x: Any) -> Any:
        x = np.asarray(x)
        if np.issubdtype(x.dtype, np.floating):
            x = x.astype(config.precision)
        return jnp.asarray(x)

    train = jtu.tree_map(lambda x: x[: config.train_samples], split.train)
    valid = getattr(split, "valid", None)
    return Data(*(jtu.tree_map(put, part) for part in (train, split.test, valid)))


def new_model(config: TrainConfig, task: AbstractTask, key: Any) -> Any:
    """An untrained model, in the precision of the run."""
    cast = lambda x: x.astype(float_dtype(config)) if eqx.is_inexact_array(x) else x
    return jtu.tree_map(cast, task.model(key))


def first_state(
    model: Any, optimizer: optax.GradientTransformation, *, validates: bool
) -> tuple[TrainState, Best | None, Any]:
    """What a run starts from: its state, its best model so far, and what is not arrays."""
    arrays, static = eqx.partition(model, eqx.is_array)
    opt_state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    state = TrainState(arrays, opt_state, jnp.zeros((), jnp.int32))
    # A copy, since the buffers of the state are given away.
    best = Best(jtu.tree_map(jnp.copy, arrays), np.inf, 0) if validates else None
    return state, best, static


def saved_part(state: TrainState, best: Best | None) -> Saved:
    """The contents of a checkpoint. There is a best model only if there is validation data."""
    return state if best is None else (state, best)


def final_arrays(*, validates: bool) -> str:
    """The path of the final model's arrays within the contents of a checkpoint."""
    return "[1].arrays" if validates else ".arrays"


class Training:
    """The state of a run, and how to advance and evaluate it."""

    def __init__(self, config: TrainConfig, task: Any):
        self.config, self.task = config, task
        if config.precision == "float64" and not jax.config.read("jax_enable_x64"):
            raise ConfigError(
                '`precision` "float64" needs `jax.config.update("jax_enable_x64", True)` before '
                "anything else."
            )
        task.scale = config.scale
        split = task.load()
        self.data_digest = data_digest(split)
        self.train_data, self.test_data, self.valid_data = on_device(split, config)
        self.num_samples = jtu.tree_leaves(self.train_data)[0].shape[0]
        if config.batch_size > self.num_samples:
            raise ConfigError(
                f"`batch_size` {config.batch_size} is more than the {self.num_samples} samples."
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
        self._order = (-1, jnp.zeros(0, jnp.int32))

        self.keys = Keys(config.seed)
        optimizer = make_optimizer(config.optimizer, self.num_steps, self.steps_per_epoch)
        self.state, self.best, self.static = first_state(
            new_model(config, task, self.keys.model),
            optimizer,
            validates=self.valid_data is not None,
        )
        regularizer = make_regularizer(config.regularizer, task.charged)
        self.weight = make_weight(config.regularizer, self.num_steps)
        solve = make_solve(
            config.training,
            regularizer=regularizer,
            quadrature=make_quadrature(config.regularizer, joint=config.joint),
        )
        step = make_step(
            task,
            self.static,
            solve,
            optimizer,
            self.weight,
            config.optimizer.weight_decay,
            joint=config.joint,
            batch_size=config.batch_size,
            steps_per_epoch=self.steps_per_epoch,
            epochs_per_order=self.epochs_per_order,
        )
        self.compiled = jax.jit(step, donate_argnums=0)
        self.evaluator = Evaluator(
            task, config.evaluation, seed=config.seed, regularizer=regularizer
        )

    @property
    def model(self) -> Any:
        """The model as it is now."""
        return eqx.combine(self.state.arrays, self.static)

    @property
    def final_model(self) -> Any:
        """The model that training is for: the best one, if there is something to tell by."""
        return self.model if self.best is None else eqx.combine(self.best.arrays, self.static)

    @property
    def saved(self) -> Any:
        """Everything that a run goes on from, as a pytree."""
        return saved_part(self.state, self.best)

    @saved.setter
    def saved(self, saved: Any) -> None:
        self.state, self.best = (saved, None) if self.best is None else saved

    def order(self, step: int) -> Any:
        """The order of samples in some epochs, that of a step among them, on the device."""
        first = step // self.steps_per_epoch // self.epochs_per_order * self.epochs_per_order
        if self._order[0] != first:
            used = self.steps_per_epoch * self.config.batch_size
            epochs = range(first, first + self.epochs_per_order)
            orders = [data_order(self.config.seed, i, self.num_samples)[:used] for i in epochs]
            self._order = first, jax.device_put(np.concatenate(orders).astype(np.int32))
        return self._order[1]

    def indices(self, step: int) -> np.ndarray:
        """Which samples a step is made on."""
        steps_per_order = self.steps_per_epoch * self.epochs_per_order
        start = step % steps_per_order * self.config.batch_size
        return np.asarray(self.order(step))[start : start + self.config.batch_size]

    def advance(self, step: int, count: int) -> tuple[StepRecord, float]:
        """Make steps, and wait for them; their records and the time they took."""
        records, key = [], self.keys.training
        start = time.perf_counter()
        for current in range(step, step + count):
            order = self.order(current)
            self.state, record = self.compiled(self.state, self.train_data, order, key)
            records.append(record)
        table = np.stack(jax.device_get(records))
        seconds = time.perf_counter() - start
        self.train_seconds += seconds
        return StepRecord(*table.T), seconds

    def warm_up(self) -> None:
        """Compile the step by making one that is thrown away, to have its time apart."""
        start = time.perf_counter()
        copy = jtu.tree_map(jnp.copy, self.state)
        out = self.compiled(copy, self.train_data, self.order(0), self.keys.training)
        jax.block_until_ready(out)
        self.compile_seconds += time.perf_counter() - start

    def row(self, step: int) -> dict[str, Any]:
        """Evaluate, and make a row of the metrics."""
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
            "weight": float(np.asarray(self.weight(step))),
            "train_seconds": self.train_seconds,
            "seconds_per_step": self.train_seconds / step if step else None,
            "compile_seconds": self.compile_seconds,
            "forward_seconds": evaluator.forward_seconds(model, self.test_data, split="test"),
        }

    def _validate(self, step: int) -> dict[str, Any]:
        """Keep the model if it is the best so far."""
        if self.best is None:
            return {}
        report = self.evaluator.report(self.model, self.valid_data, VALID_SAMPLES, split="valid")
        loss = report["loss"]
        if loss < self.best.loss:
            self.best = Best(jtu.tree_map(jnp.copy, self.state.arrays), loss, step)
        return {"valid_loss": loss, "best_step": self.best.step}
