"""The names of executors. This module does not import JAX."""

import importlib
from types import ModuleType

from ...registry import Names
from ..config import ConfigError


EXECUTORS = Names(
    "executor",
    {
        "local": "taynode.lab.sweep.executor:LocalExecutor",
        "ray": "taynode.lab.sweep.ray_executor:RayExecutor",
        "slurm": "taynode.lab.sweep.slurm_executor:SlurmExecutor",
    },
)


def optional(package: str, extra: str, purpose: str) -> ModuleType:
    """Import a package that is not always installed."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ConfigError(f"{purpose} needs {package}: pip install 'taynode[{extra}]'.") from None
