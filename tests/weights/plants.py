"""Trainings in miniature: evaluations and losses that respond to a weight by a formula.

NFE = FLOOR + (NEED - FLOOR) / (1 + weight / scale)^exponent, with a lag, noise, rounding to whole
steps of a solver, and a rise in the first part of training.
"""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np


FLOOR, NEED = 14.0, 100.0


class Plant(eqx.Module):
    """Each field is a number, or an array over plants.

    - `scale`: of the loss, and of the weight that halves (NEED - FLOOR) if `exponent` is 1.
    - `exponent`: how strongly the evaluations respond.
    - `dead_below`: the weight in units of `scale` below which they do not respond at all.
    - `bump`: by how much they rise first.
    - `lag`: steps until the response has nearly arrived.
    - `noise`: of a measurement, relative.
    - `quantum`: measurements are multiples of this.
    - `drift`: share of NEED that is missing at the beginning of training.
    - `rise`: share of NEED that is missing at first, and comes in the course of the whole training.
    - `cooling`: whether the learning rate decays along a cosine, so that the lag grows.
    - `every`: steps from measurement to measurement.
    - `ruin`: the weight in units of `scale` at which the loss is half-way back to that of the
        beginning.
    """

    scale: jax.Array | float = 1.0
    exponent: jax.Array | float = 0.3
    dead_below: jax.Array | float = 0.0
    bump: jax.Array | float = 0.0
    lag: jax.Array | float = 4.0
    noise: jax.Array | float = 0.0
    quantum: jax.Array | float = 0.0
    drift: jax.Array | float = 0.0
    rise: jax.Array | float = 0.0
    cooling: jax.Array | bool = False
    every: jax.Array | int = 1
    ruin: jax.Array | float = jnp.inf

    def response(self, weight):
        """How much of NEED - FLOOR is left, from 1 to 0."""
        x = weight / self.scale
        x = jnp.maximum(x - self.dead_below, 0.0) / (1.0 + self.dead_below)
        return (1 + self.bump * x * jnp.exp(1 - x)) / (1 + x) ** self.exponent


def product(**axes) -> Plant:
    """All combinations of some fields, as one plant of arrays."""
    rows = list(itertools.product(*axes.values()))
    columns = [jnp.array(column) for column in zip(*rows, strict=True)]
    fields = dict(zip(axes, columns, strict=True))
    others = {
        field.name: jnp.full(len(rows), field.default)
        for field in dataclasses.fields(Plant)
        if field.name not in fields
    }
    return Plant(**fields, **others)


def train(weight, plant: Plant, num_steps: int, key=None, *, offset=0.0, spoil=None):
    """Steps of training; the last state, and evaluations, weights and losses at each step.

    `spoil(step, nfe, loss)` may change what is measured.
    """
    # One program for all plants.
    plant, offset = jax.tree.map(jnp.asarray, (plant, offset))
    return _train(weight, plant, num_steps, jr.key(0) if key is None else key, offset, spoil)


@eqx.filter_jit
def _train(weight, plant, num_steps, key, offset, spoil):
    def step(carry, inputs):
        state, inertia = carry
        step_number, key = inputs
        number = step_number.astype(float)
        noise_key, loss_key = jr.split(key)
        now = weight(state)
        share = number / num_steps
        rate = jnp.where(plant.cooling, (1 + jnp.cos(jnp.pi * share)) / 2, 1.0) / plant.lag
        inertia = inertia + rate * (jnp.log(now + 1e-9 * plant.scale) - inertia)
        left = plant.response(jnp.exp(inertia))
        need = NEED * jnp.minimum(1.0, 1 - plant.drift * (1 - share / 0.4))
        need = need * (1 - plant.rise * (1 - jnp.sqrt(share)))
        nfe = FLOOR + (need - FLOOR) * left
        measured = nfe * (1 + plant.noise * jr.normal(noise_key))
        rounded = jnp.round(measured / jnp.maximum(plant.quantum, 1e-9)) * plant.quantum
        measured = jnp.where(plant.quantum > 0, rounded, measured)
        measured = jnp.where(step_number % plant.every == 0, measured, jnp.nan)
        course = 1 + 3 * jnp.exp(-number / (0.05 * num_steps)) + 0.02 * jr.normal(loss_key)
        # Simple solutions cost loss, and even simpler ones all that was gained.
        lost = 3.0 / (1.0 + plant.ruin * plant.scale / jnp.exp(inertia))
        loss = plant.scale * (course + 0.2 * (1 - left) + lost)
        seen = loss + offset
        if spoil is not None:
            measured, seen = spoil(step_number, measured, seen)
        state = weight.update(state, nfe=measured, loss=seen, penalty=left)
        return (state, inertia), (nfe, now, loss)

    keys = jr.split(key, num_steps)
    first = weight.init(), jnp.log(1e-9 * plant.scale)
    (state, _), course = jax.lax.scan(step, first, (jnp.arange(num_steps), keys))
    return state, course


def settled_at(values, target, tolerance=0.1):
    """From which share of training on all values are within a tolerance of a target."""
    outside = np.nonzero(np.abs(np.asarray(values) / target - 1) > tolerance)[0]
    return (outside[-1] + 1) / len(values) if len(outside) else 0.0
