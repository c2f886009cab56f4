"""Training on several devices: how evenly groups are loaded, and what crosses devices.

`python -m benchmarks.groups` trains digits at laptop scale for some steps on one to eight virtual
devices of this machine. Evaluations and bytes are exact. Seconds are those of devices that share
the cores of one machine, and depend on what else it does. Prints tables in Markdown.
"""

import argparse
import dataclasses
import math
import os
import re


os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from taynode.groups import group_mesh
from taynode.lab.config import RegularizerConfig
from taynode.lab.tasks.names import find_task
from taynode.lab.training.build import make_quadrature, make_regularizer, make_solve
from taynode.lab.training.objective import make_gradient
from taynode.lab.training.running import Training

from .collectives import collectives


BYTES = {"pred": 1, "s32": 4, "u32": 4, "f32": 4, "f64": 8}


def training(task: str, devices: int, batch_size: int) -> Training:
    found = find_task(task)
    penalized = RegularizerConfig("r3", 0.01)
    config = found.defaults("laptop")
    config = dataclasses.replace(config, regularizer=penalized, batch_size=batch_size)
    return Training(config, found, devices)


def num_bytes(kind: str) -> int:
    """The bytes of a type in the text of a program, such as `(f32[], f32[3,4]{1,0})`."""
    shapes = re.findall(r"(\w+)\[([\d,]*)\]", kind)
    return sum(BYTES[x] * math.prod(int(n) for n in dims.split(",") if n) for x, dims in shapes)


def crossing(text: str) -> tuple[int, int, int]:
    """Collectives inside of loops, their bytes, and the bytes of those outside."""
    counts = collectives(text)
    inside = {key: n for key, n in counts.items() if key[0]}
    size = lambda chosen: sum(num_bytes(kind) * n for (_, _, kind), n in chosen.items())
    return sum(inside.values()), size(inside), size(counts) - size(inside)


def step_text(run: Training) -> str:
    """The compiled step of a run."""
    inputs = run.state, run.train_data, run.order(0), run.step_keys
    return run.compiled.lower(*inputs).compile().as_text() or ""


def sharded_text(task: str, devices: int, batch_size: int) -> str:
    """The same step for a batch that JAX shards, solved jointly."""
    run = training(task, 1, batch_size)
    mesh = group_mesh(jax.devices()[:devices])
    rows, same = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (["groups"], []))
    batch = jtu.tree_map(lambda x: x[:batch_size], run.train_data)
    solve = make_solve(
        run.config.training,
        regularizer=make_regularizer(run.config, run.task.penalized),
        quadrature=make_quadrature(run.config),
    )
    gradient_of = make_gradient(run.task, solve, run.weight, 0.0, joint=True)

    def gradient(state, batch, key):
        model = eqx.combine(state.arrays, run.static)
        _, found = gradient_of(model, batch, state.control, jnp.float32(0.0), key)
        return eqx.filter(found, eqx.is_array)

    jitted = jax.jit(gradient, in_shardings=(same, rows, same))
    return jitted.lower(run.state, batch, run.step_keys.training).compile().as_text() or ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", default="digits")
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    head = "| devices | evaluations, mean | of the last device | ratio | seconds per step |"
    print(f"{head}\n|---|---|---|---|---|")
    for devices in given.devices:
        run = training(given.task, devices, given.batch)
        run.warm_up()
        record, seconds = run.advance(0, given.steps)
        mean, most = float(np.mean(record.nfe)), float(np.mean(record.nfe_most))
        each = seconds / given.steps
        print(
            f"| {devices} | {mean:.1f} | {most:.1f} | {most / mean:.3f} | {each:.3f} |", flush=True
        )
    number = given.devices[-1]
    head = f"| on {number} devices | collectives in loops | their bytes | bytes outside of loops |"
    print(f"\n{head}\n|---|---|---|---|")
    texts = {
        "groups": step_text(training(given.task, number, given.batch)),
        "a sharded batch, solved jointly": sharded_text(given.task, number, given.batch),
    }
    for name, text in texts.items():
        print(f"| {name} | {' | '.join(map(str, crossing(text)))} |", flush=True)


if __name__ == "__main__":
    main()
