"""Solves, regularizers, quadratures and optimizers from their names in a configuration."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import optax
from jaxtyping import PyTree

from ..._types import Arrays, RealScalar
from ...models import Solve
from ...quadrature import AbstractQuadrature
from ...registry import (
    ADJOINTS,
    derivative_order,
    OF_RATES,
    OF_STEPS,
    QUADRATURES,
    quadratures_of,
    REGULARIZERS,
    SOLVERS,
)
from ...regularizers import (
    AbstractRegularizer,
    JacobianFrobenius,
    KineticEnergy,
    TotalDerivative,
)
from ...weights import AbstractWeight, Budget, Constant, LossBudget, Scheduled
from ..config import (
    allowed_loss,
    NO_REGULARIZER,
    OptimizerConfig,
    OPTIMIZERS,
    PARAMETER_PENALTIES,
    RegularizerConfig,
    SolveConfig,
    TrainConfig,
)


T = TypeVar("T")
# The penalized part of a state.
Where: TypeAlias = Callable[[Arrays], Arrays]


def reported(where: Where) -> dict[str, AbstractRegularizer]:
    """The regularizers whose values are reported for every model."""
    return {
        "r2": TotalDerivative(order=2, where=where),
        "r3": TotalDerivative(order=3, where=where),
        "kinetic": KineticEnergy(where=where),
        "jacobian": JacobianFrobenius(where=where),
    }


def make_solve(
    config: SolveConfig,
    *,
    regularizer: PyTree[AbstractRegularizer] | None = None,
    quadrature: AbstractQuadrature | None = None,
    steer: float = 0.0,
) -> Solve:
    """A `Solve` that does not raise errors. The training loop checks its result."""
    solve = Solve(
        solver=SOLVERS.find(config.solver)(),
        stepsize_controller=dfx.PIDController(rtol=config.rtol, atol=config.atol),
        num_steps=config.steps,
        adjoint=ADJOINTS.find(config.adjoint)(),
        max_steps=config.max_steps,
        regularizer=regularizer,
        throw=False,
        steer=steer,
    )
    return solve if quadrature is None else dataclasses.replace(solve, quadrature=quadrature)


def in_double(tree: T) -> T:
    """A pytree with its floating-point arrays in double precision."""
    double = lambda x: jnp.asarray(x, jnp.float64) if eqx.is_inexact_array(x) else x
    return jtu.tree_map(double, tree)


def make_cast(config: SolveConfig) -> Callable[[T], T]:
    """A function that casts the arrays of a pytree to double precision, if a solve needs it."""
    return in_double if config.needs_double else lambda tree: tree


def make_regularizer(config: TrainConfig, where: Where) -> AbstractRegularizer | None:
    """The regularizer of a part of the state, or `None` if paths are not penalized.

    `nfe` estimates the evaluations of the solve in evaluations, which is that of use.
    """
    penalized, name = config.regularizer, config.regularizer.name
    if name == NO_REGULARIZER or name in PARAMETER_PENALTIES:
        return None
    options: dict[str, Any] = {"where": where}
    if (order := derivative_order(name)) is not None:
        options["order"] = order
    if name == "rnode":
        options |= {"kinetic": penalized.kinetic, "jacobian": penalized.jacobian}
    if name == "nfe":
        options |= {"solver": SOLVERS.find(config.evaluation.solver)()}
        options |= _tolerances(config.evaluation)
    if quadratures_of(name) == OF_STEPS and config.training.steps is not None:
        # Errors are compared with tolerances. A fixed grid has none.
        options |= _tolerances(config.training)
    return REGULARIZERS.find(name)(**options)


def _tolerances(config: SolveConfig) -> dict[str, float]:
    return {"rtol": config.rtol, "atol": config.atol}


def reported_regularizer(config: TrainConfig, where: Where) -> AbstractRegularizer | None:
    """The regularizer if it has a rate at each point, so that evaluations can report its value."""
    has_rate = quadratures_of(config.regularizer.name) == OF_RATES
    return make_regularizer(config, where) if has_rate else None


def make_parameter_penalty(config: TrainConfig) -> Callable[[eqx.Module], RealScalar] | None:
    """The penalty on parameters, or `None` if they are not penalized."""
    name = config.regularizer.name
    return PARAMETER_PENALTIES.find(name) if name in PARAMETER_PENALTIES else None


def make_quadrature(config: TrainConfig) -> AbstractQuadrature:
    """The quadrature of the penalty in training."""
    penalized, options = config.regularizer, {}
    if penalized.quadrature in ("sampled", "path"):
        options["points"] = penalized.points
    if penalized.quadrature == "sampled":
        options["batch_axis"] = 0 if config.joint and penalized.per_row else None
        options["power"] = penalized.power
    return QUADRATURES.find(penalized.quadrature)(**options)


def make_weight(config: RegularizerConfig, num_steps: int) -> AbstractWeight:
    """The weight of the penalty."""
    if config.budget is not None:
        return Budget(config.budget)
    if config.within is not None:
        losses = np.asarray(config.reference)
        steps = np.linspace(0, num_steps, len(losses))
        course = lambda step: jnp.interp(step.astype(float), steps, losses)
        return LossBudget(course, *allowed_loss(config.within))
    length = max(1, round(config.schedule_fraction * num_steps))
    if config.schedule == "warmup":
        return Scheduled(optax.linear_schedule(0.0, config.weight, length))
    if config.schedule == "taper":
        return Scheduled(optax.linear_schedule(config.weight, 0.0, length, num_steps - length))
    return Constant(config.weight)


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
        rises = lambda step: jnp.minimum(1.0, (step + 1) / config.warmup)
        schedule = lambda step, after=schedule: after(step) * rises(step)
    # The momentum of sgd and the decay of rmsprop are one setting.
    options = {"sgd": {"momentum": config.momentum}, "rmsprop": {"decay": config.momentum}}
    optimizer = OPTIMIZERS.find(config.name)(schedule, **options.get(config.name, {}))
    if config.clip is not None:
        optimizer = optax.chain(optax.clip_by_global_norm(config.clip), optimizer)
    return optimizer
