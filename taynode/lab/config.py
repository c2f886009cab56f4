"""The settings of a run. This module does not import JAX."""

import dataclasses
import functools
import hashlib
import json
import math
import types
import typing
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from ..registry import (
    ADJOINTS,
    MAX_STEPS,
    Names,
    one_of,
    QUADRATURES,
    quadratures_of,
    REGULARIZERS,
    SOLVERS,
    TOLERANCE,
)
from .files import Json


T = TypeVar("T")

SCALES = ("smoke", "laptop", "paper")
OPTIMIZERS = Names(
    "optimizer",
    {
        "adam": "optax:adam",
        "adamax": "optax:adamax",
        "sgd": "optax:sgd",
        "rmsprop": "optax:rmsprop",
    },
)
SCHEDULES = ("constant", "cosine", "steps", "exponential")
WEIGHT_SCHEDULES = ("constant", "warmup", "taper")
# Penalties on parameters instead of paths.
PARAMETER_PENALTIES = Names(
    "regularizer",
    {
        "decay": "taynode.lab.training.parameter_penalties:half_squares",
        "spectral": "taynode.lab.training.parameter_penalties:half_squared_norms",
    },
)
PRECISIONS = ("float32", "float64")
# Single precision cannot resolve smaller tolerances.
LEAST_SINGLE = 1e-7
NO_REGULARIZER = "none"
REGULARIZER_NAMES = NO_REGULARIZER, *REGULARIZERS, *PARAMETER_PENALTIES


class ConfigError(ValueError):
    """A setting does not exist or has a wrong value. The message names it."""


def positive(name: str, value: int | float) -> None:
    """Raise a `ConfigError` unless a number is above zero."""
    if not value > 0:
        raise ConfigError(f"`{name}` must be positive, got {value!r}.")


def evaluations(name: str, value: int | float) -> None:
    """Raise a `ConfigError` unless a number can be one of evaluations."""
    positive(name, value)
    if value < 1:
        raise ConfigError(
            f"`{name}` must be a number of evaluations, not a share of them, got {value!r}."
        )


def _names(names: Iterable[str]) -> str:
    *others, last = (f"`{name}`" for name in names)
    return f"{', '.join(others)} and {last}" if others else last


class AllowedLoss(NamedTuple):
    """How much loss is allowed above a reference."""

    rtol: float
    atol: float


def allowed_loss(within: str) -> AllowedLoss:
    """Parse a share of a loss, such as `1%`, or a number in units of the loss, such as `0.02`."""
    try:
        number = float(within.removesuffix("%"))
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise ConfigError(
            "`within` must be a share of the loss, such as 1%, or a positive number in units of "
            f"the loss, such as 0.02; got {within!r}."
        )
    is_share = within.endswith("%")
    return AllowedLoss(number / 100, 0.0) if is_share else AllowedLoss(0.0, number)


@dataclasses.dataclass(frozen=True)
class SolveConfig:
    """How to solve a differential equation.

    - `solver`: the name of the solver, one of `taynode.registry.SOLVERS`.
    - `rtol`: the relative tolerance of adaptive steps.
    - `atol`: the absolute tolerance of adaptive steps.
    - `steps`: the number of equal steps of a fixed grid, which replaces adaptive steps.
    - `adjoint`: the name of the adjoint that computes gradients: accepted_steps, checkpoint,
        direct or backsolve.
    - `max_steps`: the number of adaptive steps after which a solve fails.
    """

    solver: str = "dopri5"
    rtol: float = TOLERANCE
    atol: float = TOLERANCE
    steps: int | None = None
    adjoint: str = "accepted_steps"
    max_steps: int = MAX_STEPS

    def __post_init__(self):
        SOLVERS.check(self.solver)
        ADJOINTS.check(self.adjoint)
        for name in ("rtol", "atol", "max_steps"):
            positive(name, getattr(self, name))
        if self.steps is not None:
            positive("steps", self.steps)

    @property
    def needs_double(self) -> bool:
        """Whether the tolerance is too small for single precision."""
        return self.steps is None and min(self.rtol, self.atol) < LEAST_SINGLE


@dataclasses.dataclass(frozen=True)
class RegularizerConfig:
    """Which regularizer is used, and how strongly.

    - `name`: the name of the regularizer: none, r1 to r8 (total derivatives), kinetic, jacobian,
        rnode, directional, nfe (expected evaluations), curvature, error (the error estimate of a
        step), stiffness, polynomial (the distance of the path from a straight line) or diffusion
        (the noise of a stochastic equation); or, of the parameters instead of paths, decay (weight
        decay) or spectral (spectral norms of the vector field's weight matrices).
    - `weight`: the factor of the penalty in the loss; for nfe, the price of an evaluation.
    - `budget`: the evaluations of a sample to allow, with the solver and tolerance of evaluations;
        finds the weight.
    - `within`: how much loss to allow above the reference, such as 1% or, in units of the loss,
        0.02; finds the weight.
    - `reference`: training losses of an unregularized run at equal distances, from its beginning
        to its end.
    - `schedule`: how the weight changes: constant, warmup (rises from zero) or taper (falls to
        zero).
    - `schedule_fraction`: the fraction of training that the rise or fall takes.
    - `quadrature`: how the penalty is integrated: sampled, augmented or backward; steps (accepted
        steps) for error and stiffness; path (several points) for polynomial.
    - `points`: the number of random times of the quadratures sampled and path.
    - `per_row`: whether each sample of a joint batch has random times of its own.
    - `power`: the power of the mean over samples and times with the quadrature sampled; above 1,
        the largest rates count more.
    - `kinetic`: the weight of the kinetic energy within rnode.
    - `jacobian`: the weight of the Jacobian's norm within rnode.
    """

    name: str = NO_REGULARIZER
    weight: float = 0.0
    schedule: str = "constant"
    schedule_fraction: float = 0.1
    quadrature: str = "sampled"
    points: int = 1
    per_row: bool = True
    kinetic: float = 1.0
    jacobian: float = 1.0
    budget: float | None = None
    within: str | None = None
    reference: tuple[float, ...] = ()
    power: float = 1.0

    @property
    def is_controlled(self) -> bool:
        """Whether the weight follows measurements."""
        return self.budget is not None or self.within is not None

    @property
    def is_used(self) -> bool:
        """Whether the penalty enters the loss."""
        return self.name != NO_REGULARIZER and (self.is_controlled or self.weight > 0)

    def __post_init__(self):
        one_of("regularizer", self.name, REGULARIZER_NAMES)
        one_of("schedule", self.schedule, WEIGHT_SCHEDULES)
        QUADRATURES.check(self.quadrature)
        allowed = quadratures_of(self.name)
        if self.name != NO_REGULARIZER and self.quadrature not in allowed:
            raise ConfigError(
                f"`regularizer` {self.name} cannot be used with the quadrature {self.quadrature}: "
                f"pass `--quadrature` {' or '.join(allowed)}."
            )
        positive("points", self.points)
        if self.power < 1:
            raise ConfigError(f"`power` must be at least 1, got {self.power!r}.")
        if self.power != 1 and self.quadrature != "sampled":
            raise ConfigError(f"`power` is for the quadrature sampled, not {self.quadrature}.")
        if self.weight < 0:
            raise ConfigError(f"`weight` must not be negative, got {self.weight!r}.")
        self._check_control()
        if not 0 < self.schedule_fraction <= 1:
            raise ConfigError(
                "`schedule_fraction` must be above 0 and at most 1, got "
                f"{self.schedule_fraction!r}."
            )

    def _check_control(self) -> None:
        given = {"weight": self.weight, "budget": self.budget, "within": self.within}
        given = {name: value for name, value in given.items() if value}
        if len(given) > 1:
            raise ConfigError(f"Give one of {_names(given)}: each of them decides the weight.")
        if self.budget is not None:
            evaluations("budget", self.budget)
        if self.within is not None:
            allowed_loss(self.within)
            if len(self.reference) < 2:
                raise ConfigError(
                    "`within` needs the losses of an unregularized run: train one, and pass its "
                    "directory as `--reference`."
                )
        if self.is_controlled and self.quadrature == "backward":
            raise ConfigError(
                f"`{next(iter(given))}` needs the value of the penalty, which the quadrature "
                "backward does not compute: use sampled."
            )


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """How the parameters are updated.

    - `name`: the name of the optimizer: adam, adamax, sgd or rmsprop.
    - `learning_rate`: the initial learning rate.
    - `schedule`: how the learning rate changes: constant, cosine, steps or exponential.
    - `boundaries`: the epochs after which the schedule steps divides the learning rate by ten.
    - `decay`: the factor per step of the schedule exponential, which ends at a tenth.
    - `momentum`: the momentum of sgd, or the decay of squared gradients of rmsprop.
    - `warmup`: the number of steps in which the learning rate rises from zero.
    - `weight_decay`: the factor of half the sum of squared parameters in the loss.
    - `clip`: the largest norm of the gradient; larger gradients are scaled down.
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
        OPTIMIZERS.check(self.name)
        one_of("schedule", self.schedule, SCHEDULES)
        positive("learning_rate", self.learning_rate)


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """The settings of a run.

    - `task`: the name of the task, or `module:Class` for a task of your own.
    - `scale`: the size of the experiment: smoke (seconds), laptop (minutes) or paper.
    - `seed`: the seed of the initial parameters, of the order of the data and of all noise.
    - `epochs`: the number of passes through the training data.
    - `batch_size`: the number of samples per training step.
    - `precision`: float32 or float64.
    - `joint`: whether a training batch is solved with one step size for all its samples.
    - `train_samples`: the number of training samples to use, from the first on.
    - `training`: how to solve in training.
    - `evaluation`: how to solve in evaluations.
    - `num_evaluations`: the number of evaluations after the initial one.
    - `eval_samples`: the number of samples of each split per evaluation.
    - `final_samples`: the number of samples of each split in the last evaluation.
    - `optimizer`: how the parameters are updated.
    - `regularizer`: which regularizer is used, and how strongly.
    - `steer`: how far ends of solves and output times are moved at random in training, as a share
        of the time from the output before; at most 1/2 for several output times.
    - `spectral_norm`: the largest spectral norm of a weight matrix of the vector field; larger ones
        are scaled down after each step.
    - `augment`: the number of zeros that are appended to the states of classifiers and latent ODEs.
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
    steer: float = 0.0
    spectral_norm: float | None = None
    augment: int = 0

    def __post_init__(self):
        one_of("scale", self.scale, SCALES)
        one_of("precision", self.precision, PRECISIONS)
        for name in ("epochs", "batch_size", "num_evaluations", "eval_samples", "final_samples"):
            positive(name, getattr(self, name))
        for name in ("train_samples", "spectral_norm"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if not 0 <= self.steer < 1:
            raise ConfigError(f"`steer` must be at least 0 and less than 1, got {self.steer!r}.")
        if self.augment < 0:
            raise ConfigError(f"`augment` must not be negative, got {self.augment!r}.")

    @property
    def needs_x64(self) -> bool:
        """Whether JAX's double precision must be enabled.

        An evaluation whose tolerance needs double precision has it, whatever training uses.
        """
        return self.precision == "float64" or self.evaluation.needs_double


def to_dict(config: Any) -> Json:
    """A configuration as nested dictionaries."""
    return dataclasses.asdict(config)


def from_dict(kind: type[T], values: Json, where: str = "config") -> T:
    """A configuration from nested dictionaries, such as those of JSON or TOML files."""
    if not isinstance(values, dict):
        raise ConfigError(f"`{where}` must be a table of settings, got {values!r}.")
    fields = {f.name: f for f in dataclasses.fields(kind)}  # pyright: ignore[reportArgumentType]
    hints = _type_hints(kind)
    given = {}
    for name, value in values.items():
        one_of(f"{where}.{name}" if where != "config" else name, name, fields)
        given[name] = _coerce(f"{where}.{name}", hints[name], value)
    return kind(**given)


# Tables of results have thousands of configurations.
_type_hints = functools.cache(typing.get_type_hints)


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


def fingerprint(config: TrainConfig) -> str:
    """A hash of a configuration.

    Settings at their defaults do not enter it, see `chosen`.
    """
    text = json.dumps(chosen(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def chosen(value: Any) -> Any:
    """The settings that are not at their defaults, as nested dictionaries.

    A setting that a later version adds changes nothing.
    """
    if isinstance(value, tuple | list):
        return [chosen(x) for x in value]
    if not dataclasses.is_dataclass(value):
        return value
    pairs = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
    return {f.name: chosen(x) for f, x in pairs if x != f.default}
