"""`taynode train`."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ..config import ConfigError, SCALES, TrainConfig
from ..tasks.base import import_task
from .options import given, merged, read_toml, TrainOptions, with_changes


NOTHING = TrainOptions()


def train(
    task: str,
    *,
    regularizer: str | None = None,
    weight: float | None = None,
    quadrature: str | None = None,
    solver: str | None = None,
    adjoint: str | None = None,
    steps: int | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    weight_decay: float | None = None,
    learning_rate: float | None = None,
    epochs: int | None = None,
    scale: str = "laptop",
    seed: int | None = None,
    out: Path | None = None,
    resume: bool = False,
    config: Path | None = None,
    json_output: Annotated[bool, Parameter(name="--json")] = False,
    set_: Annotated[
        TrainOptions,  # pyright: ignore[reportInvalidTypeForm]
        Parameter(name="set", show_default=False),
    ] = NOTHING,
) -> None:
    """Train a model, and record the run to a directory.

    Parameters
    ----------
    task
        Such as digits, density2d or physionet, or module:Class for a task of your own.
    regularizer
        none, r1 to r8, kinetic, jacobian, rnode or directional.
    weight
        Of the penalty in the loss.
    quadrature
        sampled, augmented or backward.
    solver
        For training, such as dopri5, tsit5, bosh3, rk4 or adams.
    adjoint
        checkpoint, direct or backsolve.
    steps
        Train on a fixed grid of that many steps.
    rtol
        Relative tolerance, in training and evaluation.
    atol
        Absolute tolerance, in training and evaluation.
    weight_decay
        Factor of half the squared parameters in the loss.
    learning_rate
        At the start.
    epochs
        How many times through the data.
    scale
        smoke (seconds), laptop (minutes) or paper.
    seed
        Of weights, order of data and noise.
    out
        Where the run goes; runs/TASK-REGULARIZER-SEED by default.
    resume
        Go on with the run that is there.
    config
        A TOML file with settings; flags go before it.
    json_output
        Print the last row of the metrics as JSON, and nothing else.
    set_
        Any other setting, such as --set.evaluation.rtol 1e-8.

    """
    from ..config import one_of

    one_of("scale", scale, SCALES)
    flags = {
        "seed": seed,
        "epochs": epochs,
        "regularizer": {"name": regularizer, "weight": weight, "quadrature": quadrature},
        "training": {
            "solver": solver,
            "adjoint": adjoint,
            "steps": steps,
            "rtol": rtol,
            "atol": atol,
        },
        "evaluation": {"rtol": rtol, "atol": atol},
        "optimizer": {"weight_decay": weight_decay, "learning_rate": learning_rate},
    }
    the_task = import_task(task)
    changes = merged(read_toml(config), given(set_), _without_none(flags))
    settings = with_changes(the_task.defaults(scale), changes)
    if regularizer not in (None, "none") and not settings.regularizer.weight:
        raise ConfigError(f"`regularizer` {regularizer} needs a `--weight` above zero.")
    name = settings.regularizer.name
    directory = out or Path("runs") / f"{task.replace(':', '.')}-{name}-{settings.seed}"
    row = run(settings, the_task, directory, resume=resume, quiet=json_output)
    if json_output:
        print(json.dumps(row))


def run(
    settings: TrainConfig, task: Any, directory: Path, *, resume: bool = False, quiet: bool = False
) -> dict[str, Any]:
    """Train with a live display; the last row of the metrics."""
    import jax

    if settings.precision == "float64":
        jax.config.update("jax_enable_x64", True)
    from ..report.record import record_samples
    from ..training.loop import train as train_loop
    from .display import Display

    with Display(str(directory), enabled=not quiet and sys.stderr.isatty()) as display:
        done = train_loop(
            settings,
            task,
            directory,
            resume=resume,
            on_progress=display.show,
            on_finish=record_samples,
        )
    row = done.rows()[-1]
    if not quiet:
        print(summary(directory, row))
        if task.data_label:
            print(f"Data: {task.data_label}.")
    return row


def summary(directory: Path, row: dict[str, Any]) -> str:
    """The end of a run in a line."""
    parts = [f"{directory}: test loss {row['test_loss']:.4f}"]
    if "test_error" in row:
        parts.append(f"test error {100 * row['test_error']:.2f} %")
    parts.append(f"NFE {row['test_nfe']:.1f} per sample")
    parts.append(f"{row['train_seconds']:.1f} s of training")
    return ", ".join(parts)


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    nested = {k: _without_none(v) if isinstance(v, dict) else v for k, v in values.items()}
    return {k: v for k, v in nested.items() if v is not None and v != {}}
