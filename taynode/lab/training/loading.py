"""Loading a trained model."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import jax.tree_util as jtu
import numpy as np

from ..config import ConfigError, fingerprint, to_dict, TrainConfig
from ..tasks.base import AbstractTask, Data
from ..tasks.names import find_task
from .checkpoints import Checkpoints
from .parameters import Model, read_header, read_parameters
from .records import RunDirectory
from .running import final_arrays, new_model, on_device, prepare


@dataclasses.dataclass(frozen=True, eq=False)
class LoadedRun:
    """A trained model with its settings and its task.

    - `model`: the model of the newest checkpoint; the best one, if the run has validation data.
    - `config`: the settings of the run.
    - `task`: the task of the run. Some tasks can compute a loss only after `data` was loaded.
    - `step`: the number of training steps.
    """

    model: Any
    config: TrainConfig
    task: AbstractTask
    step: int
    load_data: Callable[[], Data] = dataclasses.field(repr=False)

    @property
    def data(self) -> Data:
        """The data of the run, in the precision of the model. It is loaded on first use."""
        return self.load_data()


def load(
    path: str | Path,
    *,
    task: AbstractTask | type[AbstractTask] | None = None,
    precision: str | None = None,
) -> LoadedRun:
    """The model and the settings of a run. The data set is not needed.

    A run from elsewhere is safe to load, because no module that its files name is imported. A task
    that is not built in has to be passed as an argument.

    **Arguments:**

    - `path`: the directory of a run, or a file with the parameters of a trained model.
    - `task`: an `AbstractTask` or its class; by default the built-in task that the run names.
    - `precision`: `"float32"` or `"float64"`; the precision of the run by default.
    """
    path = Path(path)
    config = config_of(path)
    dtype = np.dtype(precision or config.precision)
    if "float64" in (dtype.name, config.precision) and not jax.config.read("jax_enable_x64"):
        raise ConfigError(
            '`precision` "float64" needs `jax.config.update("jax_enable_x64", True)`.'
        )
    if task is None:
        task = find_task(config.task)
    elif isinstance(task, type):
        task = task()
    prepare(task, config)
    cast = lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x
    load_data = functools.cache(lambda: jtu.tree_map(cast, on_device(task.load(), config)))
    if task.model_needs_data:
        load_data()
    # All values of the template are replaced.
    template = new_model(config, task, jr.key(0))
    if path.is_file():
        model, step = read_parameters(path, template)
    else:
        model, step = _restore(RunDirectory(path), config, template)
    return LoadedRun(jtu.tree_map(cast, model), config, task, step, load_data)


def config_of(path: Path) -> TrainConfig:
    """The settings of a run, from its directory or from a file with its parameters."""
    return read_header(path).config if path.is_file() else RunDirectory(path).config()


def _restore(run: RunDirectory, config: TrainConfig, template: Model) -> tuple[Model, int]:
    """The model of the newest checkpoint, and its step."""
    checkpoints = Checkpoints(
        run.checkpoints, fingerprint=fingerprint(config), config=to_dict(config)
    )
    arrays, static = eqx.partition(template, eqx.is_array)
    # A run evaluates before it saves its first checkpoint.
    validates = any("valid_loss" in row for row in run.rows())
    restored = checkpoints.restore(arrays, part=final_arrays(validates=validates))
    if restored is None:
        raise ConfigError(f"{run.path} has no checkpoint to load a model from.")
    return eqx.combine(restored.state, static), restored.step
