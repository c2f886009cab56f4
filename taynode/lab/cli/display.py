"""Training with a live display."""

import sys
from pathlib import Path

import jax
from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeRemainingColumn

from ...easing import EasingProgress
from ..config import TrainConfig
from ..files import Json
from ..report.record import record_samples
from ..tasks.base import AbstractTask
from ..training import processes
from ..training.devices import make_cpu_devices
from ..training.loop import Progress, train
from .errors import explain


class Display:
    """A progress bar with the numbers of the last steps. It prints nothing unless `enabled`."""

    def __init__(self, title: str, *, enabled: bool = True):
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not enabled,
            transient=True,
        )
        self.line = self.bar.add_task(title, total=None, numbers="compiling")

    def __enter__(self) -> "Display":
        self.bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.bar.stop()

    def show(self, progress: Progress) -> None:
        """Show the progress of a training loop."""
        numbers = f"loss {progress.loss:.4f}  NFE {progress.nfe:.0f}"
        if progress.nfe_most is not None:
            numbers += f" (most {progress.nfe_most:.0f})"
        if progress.penalty is not None:
            numbers += f"  penalty {progress.penalty:.3g}"
        if progress.seconds_per_step:
            numbers += f"  {1 / progress.seconds_per_step:.0f} steps/s"
        self._update(progress.step, progress.num_steps, numbers)

    def show_easing(self, progress: EasingProgress) -> None:
        """Show the progress of `tn.ease`."""
        numbers = f"{progress.kind}  loss {progress.loss:.4f}  NFE {progress.nfe:.1f}"
        self._update(progress.step, progress.steps, f"{numbers}  weight {progress.weight:.3g}")

    def _update(self, step: int, total: int, numbers: str) -> None:
        self.bar.update(self.line, completed=step, total=total, numbers=numbers)


def run(
    settings: TrainConfig,
    task: AbstractTask,
    directory: Path,
    *,
    resume: bool = False,
    devices: int | None = None,
    quiet: bool = False,
) -> Json:
    """Train, and return the last row of the metrics. Nothing is printed if `quiet`."""
    if settings.needs_x64:
        jax.config.update("jax_enable_x64", True)
    if devices is not None:
        make_cpu_devices(max(1, devices // processes.number()))
    processes.join()
    shows = not quiet and sys.stderr.isatty() and processes.is_first()
    with processes.one_of_several(explain), Display(str(directory), enabled=shows) as display:
        done = train(
            settings,
            task,
            directory,
            resume=resume,
            devices=devices,
            on_progress=display.show,
            on_finish=record_samples,
        )
    if not processes.is_first():
        # The first one still writes.
        return {}
    row = done.rows()[-1]
    if not quiet:
        print(_summary(directory, row))
        if task.data_label:
            print(f"Data: {task.data_label}.")
    return row


def _summary(directory: Path, row: Json) -> str:
    """The result of a run in one line."""
    parts = [f"{directory}: test loss {row['test_loss']:.4f}"]
    if "test_error" in row:
        parts.append(f"test error {100 * row['test_error']:.2f} %")
    parts.append(f"NFE {row['test_nfe']:.1f} per sample")
    if "training_nfe_most" in row:
        ratio = row["training_nfe_most"] / row["training_nfe"] if row["training_nfe"] else 1.0
        parts.append(
            f"{row['devices']} devices, of which the last one needed {ratio:.2f} times "
            "the evaluations of the mean"
        )
    parts.append(f"{row['train_seconds']:.1f} s of training")
    line = ", ".join(parts)
    return f"{line}\n{row['control_message']}" if "control_message" in row else line
