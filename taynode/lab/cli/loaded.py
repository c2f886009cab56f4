"""Runs for commands: in the precision that they need."""

from pathlib import Path
from typing import Any

from ..training.records import RunDirectory


def load_run(run: Path, *, double: bool = False) -> Any:
    """A run, in double precision if it was trained so or if that is asked for."""
    import jax

    if double or RunDirectory(run).config().precision == "float64":
        jax.config.update("jax_enable_x64", True)
    from ..training.loading import load

    return load(run, precision="float64" if jax.config.read("jax_enable_x64") else None)
