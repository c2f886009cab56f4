"""`taynode train`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...registry import ADJOINTS, one_of, QUADRATURES, SOLVERS
from ..config import (
    ConfigError,
    from_dict,
    NO_REGULARIZER,
    REGULARIZER_NAMES,
    SCALES,
    to_dict,
    TrainConfig,
)
from ..flags import FLAGS, merged, settings_of
from ..tasks.names import import_task
from .options import described, given, read_toml, TrainOptions
from .tables import JsonOutput
from .weight import reference_losses, weight_flags


NOTHING = TrainOptions()


def _choice(words: str, names: Iterable[str]) -> Parameter:
    return Parameter(help=f"{words}: {', '.join(names)}.")


def train(
    task: str,
    *,
    regularizer: Annotated[str | None, _choice("Regularizer", REGULARIZER_NAMES)] = None,
    weight: Annotated[float | None, described("regularizer.weight")] = None,
    budget: Annotated[float | None, described("regularizer.budget")] = None,
    within: Annotated[str | None, described("regularizer.within")] = None,
    reference: Path | None = None,
    price: float | None = None,
    quadrature: Annotated[str | None, _choice("Quadrature of the penalty", QUADRATURES)] = None,
    solver: Annotated[str | None, _choice("Solver in training", SOLVERS)] = None,
    adjoint: Annotated[str | None, _choice("Adjoint in training", ADJOINTS)] = None,
    steps: Annotated[int | None, described("training.steps")] = None,
    rtol: float | None = None,
    atol: float | None = None,
    weight_decay: Annotated[float | None, described("optimizer.weight_decay")] = None,
    learning_rate: Annotated[float | None, described("optimizer.learning_rate")] = None,
    epochs: Annotated[int | None, described("epochs")] = None,
    scale: Annotated[str, described("scale")] = "laptop",
    seed: Annotated[int | None, described("seed")] = None,
    out: Path | None = None,
    resume: bool = False,
    devices: int | None = None,
    config: Path | None = None,
    json_output: JsonOutput = False,
    set_: Annotated[
        TrainOptions,  # pyright: ignore[reportInvalidTypeForm]
        Parameter(name="set", show_default=False, group="All other settings"),
    ] = NOTHING,
) -> None:
    """Train a model, and record the run in a directory.

    Parameters
    ----------
    task
        A task such as digits, density2d or physionet, or module:Class for a task of your own.
    reference
        Directory of an unregularized run of the same task, for --within.
    price
        The loss that one evaluation is worth: the weight of the regularizer nfe.
    rtol
        Relative tolerance in training and evaluation; also the absolute one unless that is given.
    atol
        Absolute tolerance in training and evaluation.
    out
        Directory of the run; runs/TASK-REGULARIZER-SEED by default.
    resume
        Continue the run that is in the directory.
    devices
        Number of devices, each of which solves a part of every batch; on CPUs, parts of the
        machine. By default one, or all of them if there are several processes.
    config
        TOML file with settings; flags override the file.

    """
    # First, when the parameters are the only local variables.
    flags = {name: value for name, value in locals().items() if name in FLAGS}
    one_of("scale", scale, SCALES)
    the_task = import_task(task)
    defaults = to_dict(the_task.defaults(scale))
    flags |= weight_flags(flags, price)
    changes = read_toml(config), settings_of(flags), given(set_)
    if reference is not None:
        changes = {"regularizer": {"reference": reference_losses(reference, task)}}, *changes
    settings = from_dict(TrainConfig, merged(defaults, *changes))
    if regularizer not in (None, NO_REGULARIZER) and not settings.regularizer.is_used:
        raise ConfigError(
            f"`regularizer` {regularizer} needs a `--budget`, or a `--weight` above zero."
        )
    name = settings.regularizer.name
    directory = out or Path("runs") / f"{task.replace(':', '.')}-{name}-{settings.seed}"
    from .display import run

    row = run(settings, the_task, directory, resume=resume, devices=devices, quiet=json_output)
    if json_output and row:
        print(json.dumps(row))
