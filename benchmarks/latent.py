"""Where the time of a training step of the latent ODE goes, and what R_2 adds to it."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from rich.console import Console

import taynode as tn
from taynode.lab.config import SolveConfig
from taynode.lab.training.build import make_solve
from taynode.models import importance_bound, LatentODE

from .measure import Cost, prepare, time_together


KEY = jr.key(0)
NUM_SERIES, NUM_TIMES, NUM_CHANNELS, NUM_DRAWS = 50, 49, 37, 3
WEIGHT = 1.0
# Makes the untrained dynamics as hard as trained ones.
WILDNESS = 2.0
# As in training, in double precision.
TRAINING = SolveConfig(rtol=1.4e-8, atol=1.4e-8)
DIFFRAX = dataclasses.replace(TRAINING, adjoint="checkpoint")


def problem() -> tuple[LatentODE, Any, Any, Any]:
    """The paper's model, and a batch of the shapes of PhysioNet."""
    model = LatentODE(NUM_CHANNELS, key=KEY)
    wild = jax.tree.map(lambda x: WILDNESS * x, model.vector_field)
    model = eqx.tree_at(lambda m: m.vector_field, model, wild)
    keys = jr.split(KEY)
    shape = NUM_SERIES, NUM_TIMES, NUM_CHANNELS
    values, mask = jr.uniform(keys[0], shape), jr.bernoulli(keys[1], 0.2, shape)
    return model, jnp.linspace(0.0, 1.0, NUM_TIMES), values, mask


def gradient(loss: Any, of: Any, *args: Any) -> Cost:
    """The cost of the gradient of a loss with respect to the parameters of something."""
    parameters, static = eqx.partition(of, eqx.is_inexact_array)
    whole = lambda parameters, *args: loss(eqx.combine(parameters, static), *args)
    return prepare(lambda: jax.grad(whole), (parameters, *args))


def step_cost(regularizer: Any, quadrature: Any, config: SolveConfig = TRAINING) -> Cost:
    """Of a whole step."""
    model, times, values, mask = problem()
    solve = make_solve(config, regularizer=regularizer, quadrature=quadrature)

    def loss(model, values, mask, key):
        found = model(times, values, mask, solve, num_draws=NUM_DRAWS, key=key)
        likelihood = model.log_likelihood(found.predicted, values, mask)
        bound = importance_bound(likelihood, found.z0, found.noise, found.std)
        penalty = found.solution.stats.get("penalty", 0.0)
        return -jnp.mean(bound) + WEIGHT * penalty

    return gradient(loss, model, values, mask, KEY)


def reconstruction() -> Any:
    """Of the step whose parts are measured."""
    model, times, values, mask = problem()
    run = lambda model: model(
        times, values, mask, make_solve(TRAINING), num_draws=NUM_DRAWS, key=KEY
    )
    return eqx.filter_jit(run)(model)


def part_costs(found: Any) -> dict[str, Cost]:
    """Of the parts of a step, each with its own gradient."""
    model, times, values, mask = problem()
    z0 = found.z0
    states, _ = model.paths(z0, times)

    def encoding(encoder, values, mask):
        return sum(jnp.sum(x) for x in encoder(times, values, mask))

    def solving(both, times):
        field, z0 = both
        moved = eqx.tree_at(lambda m: m.vector_field, model, field)
        return jnp.sum(moved.paths(z0, times, make_solve(TRAINING))[0])

    last = times[-1:]

    def decoding(both, values, mask):
        decoder, states = both
        read = eqx.tree_at(lambda m: m.decoder, model, decoder)
        return jnp.sum(read.log_likelihood(decoder(states), values, mask))

    return {
        "encoder": gradient(encoding, model.encoder, values, mask),
        "solve": gradient(solving, (model.vector_field, z0), times),
        "solve, the last state alone": gradient(solving, (model.vector_field, z0), last),
        "decoder and likelihood": gradient(decoding, (model.decoder, states), values, mask),
    }


def sections(console: Console) -> list[str]:
    """All tables."""
    with console.status("latent ODE"), jax.enable_x64(True):
        costs = {
            "whole step, unregularized": step_cost(None, tn.Augmented()),
            "the same with diffrax's default adjoint": step_cost(None, tn.Augmented(), DIFFRAX),
        }
        kinds = {
            "Sampled": tn.Sampled(),
            "Sampled, own times": tn.Sampled(batch_axis=0),
            "Augmented": tn.Augmented(),
        }
        for label, quadrature in kinds.items():
            for name, regularizer in (("R_2", tn.TotalDerivative(2)), ("RNODE", tn.RNODE())):
                costs[f"whole step, {name}, {label}"] = step_cost(regularizer, quadrature)
        found = reconstruction()
        costs |= part_costs(found)
        time_together(costs, rounds=25)
        count = int(found.solution.stats["nfe"])
    plain = costs["whole step, unregularized"].run_seconds
    lines = [
        f"#### PhysioNet's shapes: {NUM_SERIES} patients, {NUM_DRAWS} draws, NFE {count}, "
        f"bound for `Sampled` 1.05 + 2 / NFE = {1.05 + 2 / count:.3f}",
        "",
        "| | ms | / unregularized step | temporary memory MB |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {1e3 * cost.run_seconds:.2f} | {cost.run_seconds / plain:.2f} "
        f"| {cost.temp_bytes / 1e6:.1f} |"
        for name, cost in costs.items()
    ]
    return ["\n".join(lines)]
