"""A live display of training."""

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class Display:
    """A progress bar with what is known of the last steps; silent if nobody is watching."""

    def __init__(self, title: str, *, enabled: bool = True):
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not enabled,
            transient=True,
        )
        self.line: Any = None
        self.title = title

    def __enter__(self) -> "Display":
        self.bar.start()
        self.line = self.bar.add_task(self.title, total=None, numbers="compiling")
        return self

    def __exit__(self, *exc: object) -> None:
        self.bar.stop()

    def show(self, progress: Any) -> None:
        """Tell what a training loop says."""
        numbers = f"loss {progress.loss:.4f}  NFE {progress.nfe:.0f}"
        if progress.penalty is not None:
            numbers += f"  penalty {progress.penalty:.3g}"
        if progress.seconds_per_step:
            numbers += f"  {1 / progress.seconds_per_step:.0f} steps/s"
        self.bar.update(
            self.line, completed=progress.step, total=progress.num_steps, numbers=numbers
        )
