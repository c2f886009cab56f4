"""Tasks by their names. This module does not import JAX."""

import importlib
import sys
from pathlib import Path

from ...registry import one_of
from ..config import ConfigError


# The place of each class. A task is imported when it is needed.
TASKS = {
    "toy": "taynode.lab.tasks.toy:Toy",
    "digits": "taynode.lab.tasks.digits:Digits",
    "mnist": "taynode.lab.tasks.mnist:Mnist",
    "density2d": "taynode.lab.tasks.density2d:TwoMoons",
    "density2d-pinwheel": "taynode.lab.tasks.density2d:Pinwheel",
    "density2d-checkerboard": "taynode.lab.tasks.density2d:Checkerboard",
    "density2d-gaussians": "taynode.lab.tasks.density2d:EightGaussians",
    "density2d-rings": "taynode.lab.tasks.density2d:Rings",
    "flow-matching": "taynode.lab.tasks.flow_matching:MatchedTwoMoons",
    "flow-matching-pinwheel": "taynode.lab.tasks.flow_matching:MatchedPinwheel",
    "flow-matching-checkerboard": "taynode.lab.tasks.flow_matching:MatchedCheckerboard",
    "flow-matching-gaussians": "taynode.lab.tasks.flow_matching:MatchedGaussians",
    "flow-matching-rings": "taynode.lab.tasks.flow_matching:MatchedRings",
    "flow-matching-digits": "taynode.lab.tasks.flow_matching:MatchedDigits",
    "flow-matching-mnist": "taynode.lab.tasks.flow_matching:MatchedMnist",
    "miniboone": "taynode.lab.tasks.miniboone:Miniboone",
    "oscillators": "taynode.lab.tasks.oscillators:Oscillators",
    "spirals": "taynode.lab.tasks.spirals:Spirals",
    "sde": "taynode.lab.tasks.sde:SampledSDE",
    "sde-rotation": "taynode.lab.tasks.sde:RotatingSDE",
    "sde-spiral": "taynode.lab.tasks.spiral_sde:SpiralSDE",
    "digits-sde": "taynode.lab.tasks.sde_classification:DigitsSDE",
    "mnist-sde": "taynode.lab.tasks.sde_classification:MnistSDE",
    "physionet": "taynode.lab.tasks.physionet:Physionet",
    "physionet-ode-rnn": "taynode.lab.tasks.physionet:PhysionetMoving",
    "physionet-mortality": "taynode.lab.tasks.mortality:Mortality",
    "physionet-cde": "taynode.lab.tasks.mortality_cde:MortalityCDE",
    "mnist-flow": "taynode.lab.tasks.mnist_flow:MnistFlow",
}


def find_task(name: str):
    """An instance of a built-in task.

    The name may come from a file that somebody else wrote, such as the `config.json` of a run. So
    this imports nothing but built-in tasks; see `import_task` for others.
    """
    if ":" in name:
        raise ConfigError(
            f"`task` {name!r} is not a built-in task, and a task that a file names is never "
            f"imported. If you trust it, name it yourself: pass `--task {name}` on the command "
            "line, or `task=` with an instance of its class in Python."
        )
    one_of("task", name, TASKS)
    return _import(TASKS[name])


def import_task(name: str):
    """An instance of a built-in task, or of a user's own task, which is named `module:Class`.

    This imports and runs the module. Pass only names that the user has given.
    """
    if ":" not in name:
        return find_task(name)
    # A user's module lies in the working directory.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return _import(name)


def _import(name: str):
    module_name, _, class_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        raise ConfigError(
            f"`task` {name!r}: there is no module {module_name!r} here or among the installed ones."
        ) from None
    from .base import AbstractTask

    kind = getattr(module, class_name, None)
    if not (isinstance(kind, type) and issubclass(kind, AbstractTask)):
        raise ConfigError(
            f"`task` {name!r}: {class_name!r} in {module_name!r} is not a subclass of "
            "`taynode.lab.AbstractTask`."
        )
    return kind()
