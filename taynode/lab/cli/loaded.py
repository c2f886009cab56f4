"""Commands about one trained model: their common parameters, and how they load the model."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..tasks.names import import_task


RunPath = Annotated[
    Path, Parameter(help="Directory of a run, or file with the parameters of a trained model.")
]
# A task that only the files of a run name is never imported.
TaskName = Annotated[
    str | None,
    Parameter(help="Task as module:Class, if it is not built in. This imports the module."),
]
Seed = Annotated[int, Parameter(help="Seed of the random numbers.")]


def load_run(run: Path, task: str | None = None, *, double: bool = False):
    """Load a run, in double precision if it was trained so or if `double` is set."""
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
    """The default path of a file about a run: in its directory, or next to its parameters."""
    return run.with_name(f"{run.stem}-{name}") if run.is_file() else run / name
