"""A trained model, back in Python."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from ..config import ConfigError, fingerprint, to_dict, TrainConfig
from ..tasks.base import Data, find_task
from .checkpoints import Checkpoints
from .records import RunDirectory
from .running import Training


class LoadedRun(NamedTuple):
    """A run: its model at the newest checkpoint, and all that it was made with."""

    model: Any
    config: TrainConfig
    task: Any
    data: Any
    step: int


def load(path: str | Path, *, precision: str | None = None) -> LoadedRun:
    """The model and configuration of a run.

    **Arguments:**

    - `path`: the directory of the run.
    - `precision`: `"float32"` or `"float64"`; that of the run by default.
    """
    directory = RunDirectory(path)
    config = directory.config()
    task = find_task(config.task)
    training = Training(config, task)
    checkpoints = Checkpoints(
        directory.checkpoints, fingerprint=fingerprint(config), config=to_dict(config)
    )
    restored = checkpoints.restore(training.saved)
    if restored is None:
        raise ConfigError(f"{path} has no checkpoint to load a model from.")
    training.saved = restored.state
    dtype = np.dtype(precision or config.precision)
    if dtype == np.float64 and not jax.config.read("jax_enable_x64"):
        raise ConfigError(
            '`precision` "float64" needs `jax.config.update("jax_enable_x64", True)`.'
        )
    cast = lambda x: x.astype(dtype) if _is_floating(x) else x
    model = jtu.tree_map(cast, training.final_model)
    parts = training.train_data, training.test_data, training.valid_data
    data = jtu.tree_map(cast, parts)
    return LoadedRun(model, config, task, Data(*data), restored.step)


def _is_floating(x: Any) -> bool:
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)
