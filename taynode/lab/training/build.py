"""From the names in a configuration to the things themselves."""

from collections.abc import Callable
from typing import Any

import diffrax as dfx
import jax.numpy as jnp
import optax

from ...models import Solve
from ...quadrature import AbstractQuadrature, Augmented, Backward, Sampled
from ...regularizers import (
    AbstractRegularizer,
    DirectionalDerivative,
    JacobianFrobenius,
    KineticEnergy,
    RNODE,
    TotalDerivative,
)
from ...solvers import UnrolledDopri5
from ...solvers.names import SOLVERS
from ..config import OptimizerConfig, RegularizerConfig, SolveConfig, TrainConfig


ADJOINTS = {
    "checkpoint": dfx.RecursiveCheckpointAdjoint,
    "direct": dfx.DirectAdjoint,
    "backsolve": dfx.BacksolveAdjoint,
}
Where = Callable[[Any], Any]


def reported(where: Where) -> dict[str, AbstractRegularizer]:
    """What is reported of every model, whatever it was trained with."""
    return {
        "r2": TotalDerivative(order=2, where=where),
        "r3": TotalDerivative(order=3, where=where),
        "kinetic": KineticEnergy(where=where),
        "jacobian": JacobianFrobenius(where=where),
    }


def make_solve(
    config: SolveConfig,
    *,
    regularizer: Any = None,
    quadrature: AbstractQuadrature = Sampled(batch_axis=0),
    trains: bool = False,
) -> Solve:
    """A `Solve`. Failures are reported, not raised: the loop says more about them.

    `trains`: whether there will be gradients of it.
    """
    # Backsolve does not differentiate the solver's steps.
    unrolled = trains and config.solver == "dopri5" and config.adjoint != "backsolve"
    return Solve(
        solver=UnrolledDopri5() if unrolled else SOLVERS[config.solver](),
        stepsize_controller=dfx.PIDController(rtol=config.rtol, atol=config.atol),
        num_steps=config.steps,
        adjoint=ADJOINTS[config.adjoint](),
        max_steps=config.max_steps,
        regularizer=regularizer,
        quadrature=quadrature,
        throw=False,
    )


def make_regularizer(config: RegularizerConfig, where: Where) -> AbstractRegularizer | None:
    """The regularizer of a part of the state, or none."""
    name = config.name
    if name == "none":
        return None
    if name == "rnode":
        return RNODE(config.kinetic, config.jacobian, where=where)
    simple = {
        "kinetic": KineticEnergy,
        "jacobian": JacobianFrobenius,
        "directional": DirectionalDerivative,
    }
    if name in simple:
        return simple[name](where=where)
    return TotalDerivative(order=int(name[1:]), where=where)


def make_quadrature(config: RegularizerConfig, *, joint: bool) -> AbstractQuadrature:
    """How the penalty is integrated in training."""
    if config.quadrature == "sampled":
        return Sampled(config.points, batch_axis=0 if joint and config.per_row else None)
    return Augmented() if config.quadrature == "augmented" else Backward()


def make_weight(config: RegularizerConfig, num_steps: int) -> optax.Schedule:
    """The weight of the penalty as a function of the step."""
    length = max(1, round(config.schedule_fraction * num_steps))
    if config.schedule == "warmup":
        return optax.linear_schedule(0.0, config.weight, length)
    if config.schedule == "taper":
        return optax.linear_schedule(config.weight, 0.0, length, num_steps - length)
    return optax.constant_schedule(config.weight)


def make_optimizer(
    config: OptimizerConfig, num_steps: int, steps_per_epoch: int
) -> optax.GradientTransformation:
    """The optimizer with its learning rate."""
    rate = config.learning_rate
    if config.schedule == "constant":
        schedule = optax.constant_schedule(rate)
    elif config.schedule == "cosine":
        schedule = optax.cosine_decay_schedule(rate, num_steps)
    elif config.schedule == "steps":
        drops = {epoch * steps_per_epoch: 0.1 for epoch in config.boundaries}
        schedule = optax.piecewise_constant_schedule(rate, drops)
    else:
        schedule = optax.exponential_decay(rate, 1, config.decay, end_value=rate / 10)
    if config.warmup:
        schedule = _warmed_up(schedule, config.warmup)
    make = {
        "adam": lambda: optax.adam(schedule),
        "adamax": lambda: optax.adamax(schedule),
        "sgd": lambda: optax.sgd(schedule, momentum=config.momentum),
        "rmsprop": lambda: optax.rmsprop(schedule, decay=config.momentum),
    }
    optimizer = make[config.name]()
    if config.clip is not None:
        optimizer = optax.chain(optax.clip_by_global_norm(config.clip), optimizer)
    return optimizer


def _warmed_up(schedule: optax.Schedule, num_steps: int) -> optax.Schedule:
    """A schedule that rises from zero within its first steps."""
    return lambda step: schedule(step) * jnp.minimum(1.0, (step + 1) / num_steps)


def float_dtype(config: TrainConfig) -> Any:
    """The type of parameters, data and time."""
    return jnp.dtype(config.precision)
