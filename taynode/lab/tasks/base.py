"""What a task is: data, a model, a loss, and settings that suit them."""

import abc
import importlib
import sys
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ...registry import one_of
from ..config import ConfigError, TrainConfig


class Outcome(NamedTuple):
    """The result of a model on a batch.

    - `loss`: the mean over the batch, without any penalty.
    - `solution`: of the solve, from `solve(...)`; its penalty is added by the training loop.
    - `metrics`: further means over the batch, such as `{"error": ...}`.
    - `weight`: of the batch in means over several, such as its number of observations.
    """

    loss: Any
    solution: Any
    metrics: dict[str, Any]
    weight: Any = 1.0


class Batch(NamedTuple):
    """Samples along the first axis."""

    inputs: Any
    labels: Any


class Data(NamedTuple):
    """What to train on, and what to test on: pytrees of arrays with samples first.

    If there is something to validate on, the model of the lowest loss on that is the one that is
    tested in the end.
    """

    train: Any
    test: Any
    valid: Any = None


def as_data(split: Any) -> Data:
    """Inputs and labels, as the loaders of `taynode.lab.data` return them, as pytrees."""
    return Data(*(Batch(part.inputs, part.labels) for part in (split.train, split.test)))


class AbstractTask(abc.ABC):
    """A task for the training loop.

    One of your own has a `name` and four methods; see `examples/own_task.py`.
    """

    name: ClassVar[str]
    description: ClassVar[str] = ""
    # That of the run, for tasks whose data or model depend on it.
    scale: str = "laptop"
    # What is to be said of the data wherever results are shown, if `load` finds that there is.
    data_label: str = ""
    # Whether `model` uses what only `load` finds out, such as the number of channels. If so, the
    # data is loaded first when a trained model is.
    model_needs_data: ClassVar[bool] = False

    @abc.abstractmethod
    def defaults(self, scale: str) -> TrainConfig:
        """Settings for a scale: `smoke` (seconds), `laptop` (minutes) or `paper`."""

    @abc.abstractmethod
    def load(self) -> Any:
        """The data, such as a `Data(train, test)`."""

    @abc.abstractmethod
    def model(self, key: Any) -> Any:
        """A new model, an `eqx.Module`."""

    @abc.abstractmethod
    def loss(self, model: Any, batch: Any, solve: Any, key: Any) -> Outcome:
        """Apply the model to a batch, solving with `solve(vector_field, y0, key=key)`."""

    def training_loss(self, model: Any, batch: Any, solve: Any, key: Any, epoch: Any) -> Outcome:
        """The same for training, where it may depend on the epoch; by default it does not."""
        del epoch
        return self.loss(model, batch, solve, key)

    def charged(self, y: Any) -> Any:
        """Which part of the solver's state is regularized; all of it by default."""
        return y

    def more_metrics(self, model: Any, batch: Any, solve: Any, key: Any) -> dict[str, Any]:
        """Further metrics of a batch, which are of no use in training; none by default.

        `key` is not that of `loss`.
        """
        del model, batch, solve, key
        return {}

    def summaries(self, samples: Any) -> dict[str, float]:
        """Numbers of all samples of an evaluation together that are not means; none by default."""
        del samples
        return {}


# By name: where the class is, so that nothing is imported before it is needed.
TASKS = {
    "toy": "taynode.lab.tasks.toy:Toy",
    "digits": "taynode.lab.tasks.digits:Digits",
    "mnist": "taynode.lab.tasks.mnist:Mnist",
    "density2d": "taynode.lab.tasks.density2d:TwoMoons",
    "density2d-pinwheel": "taynode.lab.tasks.density2d:Pinwheel",
    "density2d-checkerboard": "taynode.lab.tasks.density2d:Checkerboard",
    "density2d-gaussians": "taynode.lab.tasks.density2d:EightGaussians",
    "density2d-rings": "taynode.lab.tasks.density2d:Rings",
    "miniboone": "taynode.lab.tasks.miniboone:Miniboone",
    "oscillators": "taynode.lab.tasks.oscillators:Oscillators",
    "physionet": "taynode.lab.tasks.physionet:Physionet",
    "physionet-ode-rnn": "taynode.lab.tasks.physionet:PhysionetMoving",
    "physionet-mortality": "taynode.lab.tasks.mortality:Mortality",
    "mnist-flow": "taynode.lab.tasks.mnist_flow:MnistFlow",
}


def find_task(name: str) -> AbstractTask:
    """A built-in task by its name.

    The name may come from a file that somebody else wrote, such as the `config.json` of a run. So
    nothing but a built-in task is ever imported here; see `import_task` for the others.
    """
    if ":" in name:
        raise ConfigError(
            f"`task` {name!r} is not a built-in task, and a task that a file names is never "
            f"imported. If you trust it, name it yourself: pass `--task {name}` on the command "
            "line, or `task=` with an instance of its class in Python."
        )
    one_of("task", name, TASKS)
    return _import(TASKS[name])


def import_task(name: str) -> AbstractTask:
    """A built-in task by its name, or a user's own by `module:Class`.

    This imports and runs the module. Pass only names that the user has given.
    """
    if ":" not in name:
        return find_task(name)
    # A user's module lies next to where the command was called.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return _import(name)


def _import(name: str) -> AbstractTask:
    module_name, _, class_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        raise ConfigError(
            f"`task` {name!r}: there is no module {module_name!r} here or among the installed ones."
        ) from None
    kind = getattr(module, class_name, None)
    if not (isinstance(kind, type) and issubclass(kind, AbstractTask)):
        raise ConfigError(
            f"`task` {name!r}: {class_name!r} in {module_name!r} is not a subclass of "
            "`taynode.lab.tasks.AbstractTask`."
        )
    return kind()
