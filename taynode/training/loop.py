"""The one training loop."""

import dataclasses
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np

from .build import (
    float_dtype,
    make_optimizer,
    make_quadrature,
    make_regularizer,
    make_solve,
    make_weight,
)
from .checkpoints import Checkpoints
from .config import ConfigError, fingerprint, to_dict, TrainConfig
from .evaluate import Evaluator
from .records import RunDirectory
from .step import make_step, TrainState


CHECKPOINT_SECONDS = 20.0
LOG_EVERY = 20


class TrainingFailed(RuntimeError):
    """Training cannot go on. The message names the step, the samples and a likely cause."""


@dataclasses.dataclass
class Progress:
    """What is told to whoever watches: numbers of the last step that is known."""

    step: int
    num_steps: int
    loss: float
    penalty: float | None
    nfe: float
    seconds_per_step: float
    row: dict[str, Any] | None = None


Watch = Callable[[Progress], None]


def data_order(seed: int, epoch: int, num_samples: int) -> np.ndarray:
    """The order of samples in an epoch: a function of the seed and the epoch alone."""
    return np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(num_samples)


class Training:
    """A run in progress: everything that is needed to take its next step."""

    def __init__(self, config: TrainConfig, task: Any, directory: RunDirectory):
        self.config, self.task, self.directory = config, task, directory
        if config.precision == "float64" and not jax.config.read("jax_enable_x64"):
            raise ConfigError(
                '`precision` "float64" needs `jax.config.update("jax_enable_x64", True)` before '
                "anything else."
            )
        split = task.load()
        self.train_data, self.test_data = (
            jtu.tree_map(self._on_device, part) for part in (split.train, split.test)
        )
        self.num_samples = jtu.tree_leaves(self.train_data)[0].shape[0]
        if config.batch_size > self.num_samples:
            raise ConfigError(
                f"`batch_size` {config.batch_size} is more than the {self.num_samples} samples."
            )
        self.steps_per_epoch = self.num_samples // config.batch_size
        self.num_steps = config.epochs * self.steps_per_epoch
        self.evaluate_at = sorted(
            {
                round(i * self.num_steps / config.num_evaluations)
                for i in range(config.num_evaluations + 1)
            }
        )

        model_key, self.key = jr.split(jr.key(config.seed))
        model = jtu.tree_map(
            lambda x: x.astype(float_dtype(config)) if eqx.is_inexact_array(x) else x,
            task.model(model_key),
        )
        optimizer = make_optimizer(config.optimizer, self.num_steps, self.steps_per_epoch)
        arrays, self.static = eqx.partition(model, eqx.is_array)
        opt_state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
        self.state = TrainState(arrays, opt_state, jnp.zeros((), jnp.int32))
        solve = make_solve(
            config.training,
            regularizer=make_regularizer(config.regularizer),
            quadrature=make_quadrature(config.regularizer, joint=config.joint),
        )
        step = make_step(
            task,
            self.static,
            solve,
            optimizer,
            make_weight(config.regularizer, self.num_steps),
            config.optimizer.weight_decay,
            joint=config.joint,
        )
        self.compiled = jax.jit(step, donate_argnums=0)
        self.evaluator = Evaluator(task, config.evaluation, seed=config.seed)
        self.train_seconds = 0.0
        self.compile_seconds = 0.0

    def _on_device(self, x: Any) -> Any:
        x = np.asarray(x)
        if np.issubdtype(x.dtype, np.floating):
            x = x.astype(self.config.precision)
        return jnp.asarray(x)

    @property
    def model(self) -> Any:
        """The model as it is now."""
        return eqx.combine(self.state.arrays, self.static)

    def indices(self, step: int) -> np.ndarray:
        """Which samples a step is made on."""
        epoch, position = divmod(step, self.steps_per_epoch)
        order = data_order(self.config.seed, epoch, self.num_samples)
        start = position * self.config.batch_size
        return order[start : start + self.config.batch_size]

    def advance(self, step: int, count: int) -> tuple[Any, float]:
        """Make steps, and wait for them; their records and the time they took."""
        records = []
        epoch, order = -1, np.zeros(0, int)
        start = time.perf_counter()
        for current in range(step, step + count):
            if current // self.steps_per_epoch != epoch:
                epoch = current // self.steps_per_epoch
                order = data_order(self.config.seed, epoch, self.num_samples)
            begin = (current % self.steps_per_epoch) * self.config.batch_size
            indices = order[begin : begin + self.config.batch_size]
            self.state, record = self.compiled(self.state, self.train_data, indices, self.key)
            records.append(record)
        records = jtu.tree_map(lambda *xs: np.asarray(jnp.stack(xs)), *records)
        return records, time.perf_counter() - start

    def warm_up(self) -> None:
        """Compile the step by making one that is thrown away, to have its time apart."""
        start = time.perf_counter()
        copy = jtu.tree_map(jnp.copy, self.state)
        out = self.compiled(copy, self.train_data, self.indices(0), self.key)
        jax.block_until_ready(out)
        self.compile_seconds += time.perf_counter() - start

    def row(self, step: int, *, last: bool) -> dict[str, Any]:
        """Evaluate, and make a row of the metrics."""
        count = None if last else self.config.eval_samples
        model, evaluator = self.model, self.evaluator
        reports = {
            "train": evaluator.report(model, self.train_data, self.config.eval_samples),
            "test": evaluator.report(model, self.test_data, count),
        }
        flat = {f"{split}_{k}": v for split, report in reports.items() for k, v in report.items()}
        penalties = evaluator.penalties(model, self.test_data)
        made = max(step, 1)
        return {
            "step": step,
            "epoch": step / self.steps_per_epoch,
            "seed": self.config.seed,
            **flat,
            **penalties,
            "train_seconds": self.train_seconds,
            "seconds_per_step": self.train_seconds / made,
            "compile_seconds": self.compile_seconds,
            "forward_seconds": evaluator.forward_seconds(model, self.test_data),
        }

    def check(self, records: Any, first_step: int) -> None:
        """Stop if the last steps went wrong."""
        bad = ~np.isfinite(records.loss + records.penalty)
        failed = records.failed > 0
        if not (bad | failed).any():
            return
        offset = int(np.argmax(bad | failed))
        step = first_step + offset
        samples = self.indices(step)
        if failed[offset]:
            cause = (
                f"the solve failed for {records.failed[offset]} of them: loosen the tolerance, "
                "raise the weight of the regularizer or `max_steps`, or train on a fixed grid"
            )
        elif np.isfinite(records.loss[offset]):
            cause = "the penalty overflowed: lower the order, or use double precision"
        else:
            cause = "the loss is not finite: lower the learning rate, or take more steps"
        raise TrainingFailed(
            f"Step {step} of {self.num_steps} failed on the training samples "
            f"{samples[:5].tolist()}...; {cause}. The last good checkpoint is kept in "
            f"{self.directory.checkpoints}."
        )


def train(
    config: TrainConfig,
    task: Any,
    out: str | Path,
    *,
    resume: bool = False,
    watch: Watch | None = None,
) -> RunDirectory:
    """Train, recording to a directory; goes on from its newest checkpoint with `resume`.

    A run that is stopped, by whatever means, and resumed ends in the same parameters, bit for bit,
    as one that was not. Ctrl-C stops it after a step, with a checkpoint.
    """
    directory = RunDirectory(out)
    if directory.exists() and not resume:
        raise ConfigError(
            f"There is a run in {directory.path} already: pass `--resume` to go on with it, or "
            "another `--out`."
        )
    training = Training(config, task, directory)
    if not directory.exists():
        directory.create(config)
    checkpoints = Checkpoints(
        directory.checkpoints, fingerprint=fingerprint(config), config=to_dict(config)
    )
    start = 0
    restored = checkpoints.restore(training.state) if resume else None
    if restored is not None:
        training.state, start = restored.state, restored.step
        training.train_seconds = restored.info["train_seconds"]
        training.compile_seconds = restored.info["compile_seconds"]
    directory.truncate(start if restored is not None else -1)
    with _Interruption() as interruption:
        _run(training, checkpoints, start, restored is None, interruption, watch)
    return directory


def _run(training, checkpoints, step, is_new, interruption, watch) -> None:
    """From a step to the end."""

    def save():
        info = {
            "train_seconds": training.train_seconds,
            "compile_seconds": training.compile_seconds,
        }
        checkpoints.save(step, training.state, info=info)

    def evaluate():
        row = training.row(step, last=step == training.num_steps)
        training.directory.append(row)
        return row

    if is_new:
        row = evaluate()
        save()
        if watch is not None:
            watch(
                Progress(0, training.num_steps, row["train_loss"], None, row["train_nfe"], 0.0, row)
            )
    if step < training.num_steps:
        training.warm_up()
    saved_at = time.perf_counter()
    while step < training.num_steps:
        next_evaluation = next(s for s in training.evaluate_at if s > step)
        count = min(LOG_EVERY, next_evaluation - step)
        records, seconds = training.advance(step, count)
        training.check(records, step)
        step += count
        training.train_seconds += seconds
        row = evaluate() if step == next_evaluation else None
        if (
            row is not None
            or interruption.asked
            or time.perf_counter() - saved_at > CHECKPOINT_SECONDS
        ):
            save()
            saved_at = time.perf_counter()
        if watch is not None:
            known = training.config.regularizer.quadrature != "backward"
            has_penalty = training.config.regularizer.name != "none" and known
            penalty = float(records.penalty[-1]) if has_penalty else None
            watch(
                Progress(
                    step,
                    training.num_steps,
                    float(records.loss.mean()),
                    penalty,
                    float(records.nfe.mean()),
                    seconds / count,
                    row,
                )
            )
        if interruption.asked:
            raise KeyboardInterrupt


class _Interruption:
    """Turns Ctrl-C into a wish to stop after the current steps; a second one stops at once."""

    def __init__(self):
        self.asked = False
        self.previous: Any = None

    def __enter__(self) -> "_Interruption":
        try:
            self.previous = signal.signal(signal.SIGINT, self._ask)
        except ValueError:  # not in the main thread, where signals arrive
            self.previous = None
        return self

    def __exit__(self, *exc: object) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)

    def _ask(self, number: int, frame: Any) -> None:
        del number, frame
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
