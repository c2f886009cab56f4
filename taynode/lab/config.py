"""What a run is made of, as plain data. Nothing here imports JAX."""

import dataclasses
import difflib
import hashlib
import json
import types
import typing
from collections.abc import Iterable
from typing import Any, TypeVar


T = TypeVar("T")

SCALES = ("smoke", "laptop", "paper")
REGULARIZERS = (
    "none",
    *(f"r{k}" for k in range(1, 9)),
    "kinetic",
    "jacobian",
    "rnode",
    "directional",
)
QUADRATURES = ("sampled", "augmented", "backward")
SOLVERS = (
    "dopri5",
    "dopri8",
    "tsit5",
    "bosh3",
    "heun",
    "midpoint",
    "euler",
    "rk4",
    "fehlberg12",
    "cash_karp",
    "rkf45",
    "owren_zennaro4",
    "owren_zennaro5",
    "tanaka_yamashita7",
    "adams",
)
ADJOINTS = ("checkpoint", "direct", "backsolve")
OPTIMIZERS = ("adam", "adamax", "sgd", "rmsprop")
SCHEDULES = ("constant", "cosine", "steps", "exponential")
WEIGHT_SCHEDULES = ("constant", "warmup", "taper")
PRECISIONS = ("float32", "float64")


class ConfigError(ValueError):
    """A setting that does not exist or makes no sense; the message names it."""


def one_of(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Refuse what is not among the choices, naming the nearest."""
    choices = list(choices)
    if value not in choices:
        near = difflib.get_close_matches(str(value), [str(c) for c in choices], n=3)
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?" if near else f"choose from {choices}."
        )
        raise ConfigError(f"`{name}` {value!r} is not known: {hint}")


def positive(name: str, value: Any) -> None:
    """Refuse numbers that are not above zero."""
    if not value > 0:
        raise ConfigError(f"`{name}` must be positive, got {value!r}.")


@dataclasses.dataclass(frozen=True)
class SolveConfig:
    """How to solve.

    - `solver`: by name, see `SOLVERS`.
    - `rtol`, `atol`: tolerances of adaptive steps.
    - `steps`: a fixed grid of that many equal steps instead.
    - `adjoint`: how gradients are computed, see `ADJOINTS`.
    - `max_steps`: give up after that many adaptive steps.
    """

    solver: str = "dopri5"
    rtol: float = 1e-5
    atol: float = 1e-5
    steps: int | None = None
    adjoint: str = "checkpoint"
    max_steps: int = 512

    def __post_init__(self):
        one_of("solver", self.solver, SOLVERS)
        one_of("adjoint", self.adjoint, ADJOINTS)
        for name in ("rtol", "atol", "max_steps"):
            positive(name, getattr(self, name))
        if self.steps is not None:
            positive("steps", self.steps)


@dataclasses.dataclass(frozen=True)
class RegularizerConfig:
    """What is charged, and how much.

    - `name`: see `REGULARIZERS`; `r3` is the third total derivative.
    - `weight`: of the penalty in the loss.
    - `schedule`: of the weight: `constant`, `warmup` (rises from zero), `taper` (falls to zero).
    - `schedule_fraction`: which part of training the rise or fall takes.
    - `quadrature`: see `QUADRATURES`.
    - `points`: how many times are sampled.
    - `per_row`: whether each sample of a joint batch gets times of its own.
    - `kinetic`, `jacobian`: the weights inside of `rnode`.
    """

    name: str = "none"
    weight: float = 0.0
    schedule: str = "constant"
    schedule_fraction: float = 0.1
    quadrature: str = "sampled"
    points: int = 1
    per_row: bool = False
    kinetic: float = 1.0
    jacobian: float = 1.0

    def __post_init__(self):
        one_of("regularizer", self.name, REGULARIZERS)
        one_of("schedule", self.schedule, WEIGHT_SCHEDULES)
        one_of("quadrature", self.quadrature, QUADRATURES)
        positive("points", self.points)
        if self.weight < 0:
            raise ConfigError(f"`weight` must not be negative, got {self.weight!r}.")
        if not 0 < self.schedule_fraction <= 1:
            raise ConfigError(
                "`schedule_fraction` must be above 0 and at most 1, got "
                f"{self.schedule_fraction!r}."
            )


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """How parameters move.

    - `name`: see `OPTIMIZERS`.
    - `learning_rate`: at the start.
    - `schedule`: of the learning rate, see `SCHEDULES`.
    - `boundaries`: for `steps`: the epochs after which it is divided by ten.
    - `decay`: for `exponential`: the factor per step, down to a tenth.
    - `momentum`: of `sgd`; the decay of squares of `rmsprop`.
    - `warmup`: for how many steps the learning rate rises from zero.
    - `weight_decay`: the factor of half the sum of squares of all parameters in the loss.
    - `clip`: the largest norm of the gradient; none by default.
    """

    name: str = "adam"
    learning_rate: float = 1e-3
    schedule: str = "constant"
    boundaries: tuple[int, ...] = ()
    decay: float = 0.999
    momentum: float = 0.9
    warmup: int = 0
    weight_decay: float = 0.0
    clip: float | None = None

    def __post_init__(self):
        one_of("optimizer", self.name, OPTIMIZERS)
        one_of("schedule", self.schedule, SCHEDULES)
        positive("learning_rate", self.learning_rate)


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """A whole run.

    - `task`: by name, or `module:Class` for one of your own.
    - `scale`: see `SCALES`.
    - `seed`: of weights, order of data and noise.
    - `epochs`, `batch_size`: how long, and how many samples a step.
    - `precision`: see `PRECISIONS`.
    - `joint`: solve a training batch with one step size, or each sample with its own.
    - `training`, `evaluation`: how to solve in each.
    - `train_samples`: how many of the training samples to use, from the first on; all by default.
    - `num_evaluations`: how many times the model is evaluated, besides before the first step.
    - `eval_samples`: of each split, in such an evaluation.
    - `final_samples`: of each split, in the last one.
    - `optimizer`, `regularizer`: see their own classes.
    """

    task: str = "digits"
    scale: str = "laptop"
    seed: int = 0
    epochs: int = 10
    batch_size: int = 100
    precision: str = "float32"
    joint: bool = True
    train_samples: int | None = None
    training: SolveConfig = SolveConfig()
    evaluation: SolveConfig = SolveConfig()
    num_evaluations: int = 10
    eval_samples: int = 200
    final_samples: int = 10_000
    optimizer: OptimizerConfig = OptimizerConfig()
    regularizer: RegularizerConfig = RegularizerConfig()

    def __post_init__(self):
        one_of("scale", self.scale, SCALES)
        one_of("precision", self.precision, PRECISIONS)
        for name in ("epochs", "batch_size", "num_evaluations", "eval_samples", "final_samples"):
            positive(name, getattr(self, name))
        if self.train_samples is not None:
            positive("train_samples", self.train_samples)


def to_dict(config: Any) -> dict[str, Any]:
    """A configuration as nested dictionaries."""
    return dataclasses.asdict(config)


def from_dict(kind: type[T], values: dict[str, Any], where: str = "config") -> T:
    """A configuration from nested dictionaries, such as those of JSON or TOML files."""
    if not isinstance(values, dict):
        raise ConfigError(f"`{where}` must be a table of settings, got {values!r}.")
    fields = {f.name: f for f in dataclasses.fields(kind)}  # pyright: ignore[reportArgumentType]
    hints = typing.get_type_hints(kind)
    given = {}
    for name, value in values.items():
        one_of(f"{where}.{name}" if where != "config" else name, name, fields)
        given[name] = _coerce(f"{where}.{name}", hints[name], value)
    return kind(**given)


def _coerce(where: str, hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint):
        return from_dict(hint, value, where)  # pyright: ignore[reportArgumentType]
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for option in options:
        if option is type(None) and value is None:
            return None
        if typing.get_origin(option) is tuple and isinstance(value, list | tuple):
            return tuple(value)
        if option is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if isinstance(option, type) and type(value) is option:
            return value
    names = " or ".join(getattr(o, "__name__", str(o)) for o in options)
    raise ConfigError(f"`{where}` must be {names}, got {value!r}.")


def digest_of(config: Any, length: int = 16) -> str:
    """A hash by which equal configurations are known.

    What is left at its default does not enter it: a setting that a later version adds leaves the
    runs of earlier ones what they were.
    """
    text = json.dumps(_chosen(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _chosen(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_chosen(x) for x in value]
    if not dataclasses.is_dataclass(value):
        return value
    pairs = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
    return {f.name: _chosen(x) for f, x in pairs if x != f.default}


def fingerprint(config: TrainConfig) -> str:
    """A hash by which runs of the same configuration are known."""
    return digest_of(config)
