"""Solves on eight virtual devices: `python -m tests.groups.on_devices CASE ...`.

This is a process of its own. It prints what it finds as JSON, for `test_groups.py`.
"""

import dataclasses
import json
import os
import sys
from typing import Any


os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import taynode as tn
from benchmarks.collectives import collectives
from taynode.lab.config import RegularizerConfig, SolveConfig
from taynode.lab.tasks.base import Outcome
from taynode.lab.training.build import (
    make_quadrature,
    make_regularizer,
    make_solve,
    make_weight,
)
from taynode.lab.training.objective import make_gradient
from taynode.lab.training.probe import make_probe
from taynode.lab.training.running import Training

from ..lab.training.tiny_task import Tiny


jax.config.update("jax_enable_x64", True)

ROWS, SIZE = 16, 3
KEY = jr.key(7)
# The rows of later groups are stiffer.
RATES = np.repeat(np.linspace(1.0, 30.0, 8), ROWS // 8)
BATCH = np.random.default_rng(0).normal(size=(ROWS, SIZE)), RATES


def field(t, y, args):
    matrix, rates = args
    return -rates.value[:, None] * jnp.tanh(y @ matrix + t)


def loss_of(quadrature):
    def loss_fn(model, batch, weight, *, key):
        y0, rates = batch
        sol = tn.diffeqsolve(
            dfx.ODETerm(field),
            dfx.Bosh3(),
            0.0,
            1.0,
            0.1,
            y0,
            (model["matrix"], tn.PerRow(rates)),
            stepsize_controller=dfx.PIDController(rtol=1e-3, atol=1e-3),
            regularizer=tn.TotalDerivative(order=2),
            quadrature=quadrature,
            key=key,
            throw=False,
        )
        penalty = jnp.mean(jnp.asarray(sol.stats["penalty"]))
        return jnp.mean(sol.ys[-1] ** 2) + weight * penalty, sol.stats["nfe"]

    return loss_fn


def one_by_one(loss_fn):
    """The loss of rows that are solved alone."""

    def each(model, batch, weight, *, key):
        keys = jr.split(key, len(batch[0]))
        alone = lambda row, key: loss_fn(
            model, jtu.tree_map(lambda x: x[None], row), weight, key=key
        )
        losses, nfe = jax.vmap(alone)(batch, keys)
        return jnp.mean(losses), jnp.max(nfe)

    return each


SAMPLED = loss_of(tn.Sampled(batch_axis=0))
CASES = {
    "sampled": SAMPLED,
    "augmented": loss_of(tn.Augmented()),
    "single": one_by_one(SAMPLED),
}
MODEL = {"matrix": jnp.asarray(np.random.default_rng(1).normal(size=(SIZE, SIZE))), "name": "tanh"}
WEIGHT = 0.01


def plain(x):
    return jtu.tree_map(lambda x: np.asarray(x).tolist(), x)


def in_turn(loss_fn, num_groups):
    """On one device, group by group."""
    run = eqx.filter_jit(eqx.filter_value_and_grad(loss_fn, has_aux=True))
    size = ROWS // num_groups
    found = []
    for i in range(num_groups):
        rows = jtu.tree_map(lambda x, i=i: x[i * size : (i + 1) * size], BATCH)
        (loss, nfe), grads = run(MODEL, rows, WEIGHT, key=jr.fold_in(KEY, i))
        found.append((loss, nfe, grads["matrix"]))
    losses, nfe, grads = zip(*found, strict=True)
    return plain({"loss": np.mean(losses), "nfe": nfe, "gradient": np.mean(grads, axis=0)})


def compiled(run, *inputs, **more):
    """The compiled program of a function, and what crosses devices in it."""
    jitted: Any = eqx.filter_jit(run)
    program = jitted.lower(*inputs, **more).compile()
    counts = collectives(program.compiled.as_text())
    crossing = [[*which, count] for which, count in sorted(counts.items())]
    return program, crossing


def at_once(loss_fn, num_groups):
    """On several devices."""
    mesh = tn.group_mesh(jax.devices()[:num_groups])
    run = tn.grouped_value_and_grad(loss_fn, mesh, has_aux=True)
    model, key = jax.device_put((MODEL["matrix"], KEY), NamedSharding(mesh, P()))
    batch = jax.device_put(BATCH, NamedSharding(mesh, P("groups")))
    inputs = MODEL | {"matrix": model}, batch, WEIGHT
    program, crossing = compiled(run, *inputs, key=key)
    (loss, nfe), grads = program(*inputs, key=key)
    assert grads["name"] is None
    found = {"loss": loss, "nfe": nfe, "gradient": grads["matrix"]}
    return plain(found) | {"crossing": crossing}


def sharded_by_jax(num_groups):
    """A joint solve of a sharded batch, as users of diffrax write it."""
    mesh = tn.group_mesh(jax.devices()[:num_groups])
    batch = jax.device_put(BATCH, NamedSharding(mesh, P("groups")))
    gradient = eqx.filter_value_and_grad(SAMPLED, has_aux=True)
    return compiled(gradient, MODEL, batch, WEIGHT, key=KEY)[1]


def per_row(num_groups):
    """The same as without groups."""
    function = lambda model, batch: jax.vmap(lambda y, rate: jnp.tanh(y @ model) * rate)(*batch)
    run = tn.grouped(function, tn.group_mesh(jax.devices()[:num_groups]))
    found, expected = (jax.jit(f)(MODEL["matrix"], BATCH) for f in (run, function))
    return plain((found, expected))


class Weighted(Tiny):
    """Some samples do not count, as values that were not observed."""

    def loss(self, model, batch, solve, key):
        out, solution = model(batch.inputs, solve, key=key)
        counts = (batch.inputs > -0.5).astype(out.dtype)
        number = jnp.sum(counts)
        loss = jnp.sum(counts * (out - batch.labels) ** 2) / jnp.maximum(number, 1.0)
        return Outcome(loss, solution, {}, number)


class Field(eqx.Module):
    """The second number of a row does not change: it is the rate of the first one."""

    factor: jax.Array

    def __call__(self, t, y, args):
        change = -y[..., 1] * jnp.tanh(self.factor * y[..., 0] + t)
        return jnp.stack([change, jnp.zeros_like(change)], axis=-1)


class Unequal(Tiny):
    """The rows of later groups are stiffer."""

    def loss(self, model, batch, solve, key):
        solution = solve(model, batch, key=key)
        return Outcome(jnp.mean(solution.ys[-1, ..., 0] ** 2), solution, {})


def means_over_groups(num_groups):
    """The numbers of a batch, its gradient and a probe; and those of its groups in turn."""
    solve = SolveConfig(solver="bosh3", rtol=1e-3, atol=1e-3)
    penalized = RegularizerConfig("r2", weight=0.3)
    task = Unequal()
    config = dataclasses.replace(task.defaults("smoke"), training=solve, regularizer=penalized)
    rates = np.repeat(np.linspace(1.0, 30.0, num_groups), ROWS // num_groups)
    batch = np.stack([np.linspace(0.5, 1.5, ROWS), rates], axis=1)
    model, due = Field(jnp.array(0.7)), jnp.array(True)

    def compiled_on(mesh):
        weight = make_weight(penalized, 1)
        regularizer = make_regularizer(config, task.penalized)
        made = make_solve(solve, regularizer=regularizer, quadrature=make_quadrature(config))
        gradient_of = make_gradient(task, made, weight, None, 0.0, joint=True, mesh=mesh)
        probe = make_probe(task, solve, solve, mesh=mesh)

        def run(model, batch, key):
            measured, gradient = gradient_of(model, batch, weight.init(), 0.0, key)
            nfe = probe(due, model, batch, key)
            never = probe(~due, model, batch, key)
            return measured._asdict() | {"gradient": gradient.factor, "probe": nfe, "never": never}

        return jax.jit(run)

    together = compiled_on(tn.group_mesh(jax.devices()[:num_groups]))(model, batch, KEY)
    alone = compiled_on(None)
    groups = np.split(batch, num_groups)
    return plain((together, [alone(model, x, jr.fold_in(KEY, i)) for i, x in enumerate(groups)]))


def tensor_parallel(num_devices):
    """A solve whose vector field is divided among devices, and one whose field is not."""
    mesh = Mesh(np.array(jax.devices()[:num_devices]), ("model",))
    wide = np.random.default_rng(2).normal(size=(2, SIZE, 2 * num_devices))
    columns, rows = P(None, "model"), P("model", None)

    def whole(y, first, second):
        return jnp.tanh(y @ first) @ second

    divided = jax.shard_map(
        lambda *inputs: jax.lax.psum(whole(*inputs), "model"),
        mesh=mesh,
        in_specs=(P(), columns, rows),
        out_specs=P(),
    )

    def loss_fn(weights, apply):
        sol = tn.diffeqsolve(
            dfx.ODETerm(lambda t, y, args: apply(y, *args) - y),
            dfx.Bosh3(),
            0.0,
            1.0,
            0.1,
            BATCH[0],
            weights,
            stepsize_controller=dfx.PIDController(rtol=1e-4, atol=1e-4),
            regularizer=tn.TotalDerivative(order=3),
            key=KEY,
            throw=False,
        )
        return jnp.mean(sol.ys[-1] ** 2) + WEIGHT * sol.stats["penalty"], sol.stats["nfe"]

    run = jax.jit(jax.value_and_grad(loss_fn, has_aux=True), static_argnums=1)
    weights = jnp.asarray(wide[0]), jnp.asarray(wide[1].T)
    pairs = zip(weights, (columns, rows), strict=True)
    placed = tuple(jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in pairs)
    found = run(placed, divided)
    assert found[1][0].sharding.spec == columns
    return plain((found, run(weights, whole)))


def in_the_lab(num_groups):
    """Records of steps and an evaluation, on several devices and on one.

    With steps of equal length and without random numbers, groups make no difference.
    """
    grid = SolveConfig(solver="euler", steps=2)
    config = Weighted().defaults("smoke")
    config = dataclasses.replace(
        config, training=grid, evaluation=grid, regularizer=RegularizerConfig(), precision="float64"
    )
    found = []
    for number in (num_groups, None):
        training = Training(config, Weighted(), number)
        record, _ = training.advance(0, 3)
        samples = training.evaluator.samples(training.model, training.test_data, split="test")
        later = training.on_one_device()
        again = later.evaluator.samples(later.model, later.test_data, split="test")
        row = training._groups()
        found.append({"record": record, "loss": samples.loss, "again": again.loss, "row": row})
    return plain(found)


def main(names):
    """What is asked for: `jax`, `rows`, or cases with a number of groups, such as `sampled-2`."""
    found = {}
    for name in names:
        kind, _, number = name.partition("-")
        if kind == "jax":
            found[name] = sharded_by_jax(2)
        elif kind == "lab":
            found[name] = in_the_lab(8)
        elif kind == "means":
            found[name] = means_over_groups(4)
        elif kind == "tensor":
            found[name] = tensor_parallel(4)
        elif kind == "rows":
            found[name] = per_row(8)
        else:
            found[name] = [run(CASES[kind], int(number)) for run in (at_once, in_turn)]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
