"""The one training loop."""

import dataclasses
import hashlib
import time
from collections.abc import Callable
from pathlib import Path

from ..config import ConfigError, fingerprint, NO_REGULARIZER, to_dict, TrainConfig
from ..files import Json
from ..launch import tell, tell_begun
from ..tasks.base import AbstractTask
from .checkpoints import CheckpointError, Checkpoints, Restored
from .devices import check_topology, everywhere, here, TOPOLOGY
from .failures import FailureCheck, TrainingFailed
from .interruption import Interruption
from .processes import agree_on, agreed, is_first, of_all, together, Wanted
from .records import METRICS, RunDirectory
from .running import Training


CHECKPOINT_SECONDS = 20.0
# Steps run in blocks. Their results are seen, and Ctrl-C takes effect, at the end of a block.
BLOCK_SECONDS, MAX_BLOCK = 1.0, 50
# What a run knows besides its state.
KEPT = ("train_seconds", "compile_seconds", "training_nfe", "training_nfe_most", "course")


class Interrupted(KeyboardInterrupt):
    """Training was stopped by Ctrl-C. Its state has been saved."""


@dataclasses.dataclass
class Progress:
    """The progress of a run: means over the last block of steps, and the row of an evaluation.

    `nfe_most` is that of the device that needs most evaluations, if there are several.
    """

    step: int
    num_steps: int
    loss: float
    penalty: float | None
    nfe: float
    seconds_per_step: float
    row: Json | None = None
    nfe_most: float | None = None


def train(
    config: TrainConfig,
    task: AbstractTask,
    out: str | Path,
    *,
    resume: bool = False,
    devices: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_finish: Callable[[Training, Path], None] | None = None,
) -> RunDirectory:
    """Train, and record the run in a directory.

    Ctrl-C stops the run after the current block of steps, and saves a checkpoint. A run that was
    stopped in any way, even by a kill, and then resumed ends with the same parameters, bit for
    bit, as one that was not stopped, if it is on as many devices as before.

    **Arguments:**

    - `config`: all settings, such as `task.defaults("laptop")`.
    - `task`: the `AbstractTask` to train.
    - `out`: the directory of the run.
    - `resume`: continue the run in `out` from its newest checkpoint, if there is one.
    - `devices`: the number of devices. Each of them solves a group of every batch, with its own
        step sizes if the batch is solved jointly. By default one, or all of them if there are
        several processes.
    - `on_progress`: called with a `Progress` about once a second.
    - `on_finish`: called with the training and its directory just before the status becomes
        `finished`. For example, `taynode.lab.report.record.record_samples`.
    """
    directory = RunDirectory(out)
    writes = is_first()
    settings = f"{fingerprint(config)} on {devices} devices"
    agree_on("settings", hashlib.sha256(settings.encode()).hexdigest())
    # As the first process says, since launchers of other hosts may have seen less of the run.
    resume = bool(of_all(resume)[0, 0])
    with together():
        if writes and directory.exists() and not resume:
            raise ConfigError(
                f"There is a run in {directory.path} already: pass `--resume` to go on with it, or "
                "another `--out`."
            )
        training = Training(config, task, devices)
    agree_on("data", training.data_digest)
    tell_begun()
    checkpoints = Checkpoints(
        directory.checkpoints, fingerprint=fingerprint(config), config=to_dict(config)
    )
    with together():  # The others wait for the first one.
        if writes:
            _begin(directory, training, task.data_label)
    template = here(training.saved) if training.mesh is not None else training.saved
    with together():
        restored = checkpoints.restore(template) if resume else None
    _check_same(restored, directory)
    if restored is not None:
        training.saved = everywhere(restored.state, training.mesh)
        for name in KEPT:
            setattr(training, name, restored.info.get(name, getattr(training, name)))
        check_topology(training.topology, restored)
    step = None if restored is None else restored.step
    with together():
        if writes:
            directory.truncate(-1 if step is None else step)
            evaluated = [s for s in training.evaluate_at if step is not None and s <= step]
            _check_rows(directory, evaluated)
    set_status = directory.set_status if writes else lambda *args, **more: None
    set_status("running")
    loop = _Loop(training, directory, checkpoints, on_progress, writes=writes)
    try:
        with Interruption() as interruption:
            loop.run(step, interruption)
    except TrainingFailed as failure:
        set_status("failed", step=failure.step, message=str(failure))
        raise
    except Interrupted as stop:
        set_status("stopped", message=str(stop))
        raise
    tell("finishing", training.num_steps)
    if on_finish is not None and writes:
        on_finish(training.on_one_device(), directory.path)
    set_status("finished", step=training.num_steps)
    return directory


def _begin(directory: RunDirectory, training: Training, data_label: str) -> None:
    """Create the directory of a run, or raise an error unless it was begun on the same data."""
    if not directory.exists():
        directory.create(training.config, data_label, training.data_digest)
    elif directory.environment().get("data_digest") not in (None, training.data_digest):
        raise CheckpointError(
            f"The run in {directory.path} was begun on other data than there is now. Restore that "
            "data to continue the run, or start another run."
        )


def _check_same(restored: Restored | None, directory: RunDirectory) -> None:
    """Raise an error unless all processes have restored the same checkpoint."""
    steps = of_all(-1 if restored is None else restored.step)[:, 0].tolist()
    if len(set(steps)) > 1:
        found = ", ".join("none" if step < 0 else f"step {step}" for step in steps)
        raise CheckpointError(
            f"The processes see different checkpoints in {directory.checkpoints}: {found}. The "
            "directory of a run must be on a file system that all hosts share."
        )


def _check_rows(directory: RunDirectory, expected: list[int]) -> None:
    """Raise an error unless the metrics hold exactly the evaluations up to the checkpoint."""
    if (found := [row["step"] for row in directory.rows()]) != expected:
        lost = ", ".join(str(s) for s in expected if s not in found) or "none"
        raise CheckpointError(
            f"{directory.path / METRICS} is damaged: it lacks the evaluations of steps {lost}. "
            "Restore it from a backup, or start another run."
        )


class _Loop:
    """The order of steps, evaluations and checkpoints."""

    def __init__(
        self,
        training: Training,
        directory: RunDirectory,
        checkpoints: Checkpoints,
        on_progress: Callable[[Progress], None] | None,
        *,
        writes: bool,
    ):
        self.writes, self.evaluates = writes, False
        self.training, self.directory, self.checkpoints = training, directory, checkpoints
        self.notify = on_progress or (lambda progress: None)
        config = training.config.regularizer
        self.has_penalty = config.name != NO_REGULARIZER and config.quadrature != "backward"

    def run(self, step: int | None, interruption: Interruption) -> None:
        """Train from a step to the end; `None` means that not even step 0 has been evaluated."""
        training = self.training
        total = training.num_steps
        row = None
        if step is None:
            step = 0
            row = self._evaluate(step)
            self._save(step)
            self.notify(Progress(0, total, row["train_loss"], None, row["train_nfe"], 0.0, row))
        first_loss = (row or self.directory.rows()[0])["train_loss"]
        check = FailureCheck(
            total,
            first_loss,
            training.indices,
            self.directory.checkpoints,
            penalty_known=self.has_penalty,
        )
        if step < total:
            training.warm_up()
        saved, saved_at, block = step, time.perf_counter(), 1
        while step < total:
            is_old = time.perf_counter() - saved_at > CHECKPOINT_SECONDS
            stops, saves, block = agreed(Wanted(interruption.requested, is_old, block))
            if (stops or saves) and saved != step:
                self._save(step)
                saved, saved_at = step, time.perf_counter()
            if stops:
                raise Interrupted(f"Stopped at step {step} of {total}; go on with `--resume`.")
            next_evaluation = next(s for s in training.evaluate_at if s > step)
            count = min(block, next_evaluation - step)
            records, seconds = training.advance(step, count)
            check(records, step)
            step += count
            tell("step", step)
            block = max(1, min(MAX_BLOCK, round(BLOCK_SECONDS * count / seconds)))
            row = self._evaluate(step) if step == next_evaluation else None
            if row is not None:
                self._save(step)
                saved, saved_at = step, time.perf_counter()
                tell("step", step)
            penalty = float(records.penalty.mean()) if self.has_penalty else None
            means = float(records.loss.mean()), penalty, float(records.nfe.mean())
            most = None if training.mesh is None else float(records.nfe_most.mean())
            self.notify(Progress(step, total, *means, seconds / count, row, most))

    def _evaluate(self, step: int) -> Json:
        if not self.evaluates:
            # The first evaluation of this process compiles, which may take longer than steps may.
            tell("compiling", step)
            self.evaluates = True
        row = self.training.row(step)
        if self.writes:
            self.directory.append(row)
        return row

    def _save(self, step: int) -> None:
        if not self.writes:
            return
        info = {name: getattr(self.training, name) for name in KEPT}
        info[TOPOLOGY] = list(self.training.topology)
        self.checkpoints.save(step, self.training.saved, info=info)
