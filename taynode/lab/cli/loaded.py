"""Runs for commands: in the precision that they need."""

from pathlib import Path
from typing import Any

from ..tasks.base import import_task


# What the user says that the task of a run is. What its files say is never imported.
TaskName = str | None


def load_run(run: Path, task: TaskName = None, *, double: bool = False) -> Any:
    """A run, in double precision if it was trained so or if that is asked for."""
    import jax

    from ..training.loading import config_of, load

    if double or config_of(run).precision == "float64":
        jax.config.update("jax_enable_x64", True)
    return load(
        run,
        task=None if task is None else import_task(task),
        precision="float64" if jax.config.read("jax_enable_x64") else None,
    )


def beside(run: Path, name: str) -> Path:
    """Where a file about a run goes by default: into its directory, or next to its parameters."""
    return run.with_name(f"{run.stem}-{name}") if run.is_file() else run / name
