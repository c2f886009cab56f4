"""What the training loop adds to the bare compiled step."""

import dataclasses
import statistics
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

from taynode.lab import find_task
from taynode.lab.config import SolveConfig
from taynode.lab.training.failures import FailureCheck
from taynode.lab.training.running import Training


BLOCK = 50
ROUNDS = 15


def training_of(name: str, steps: int) -> Training:
    """A run on a fixed grid, where steps are as short as they get."""
    task = find_task(name)
    grid = SolveConfig(solver="rk4", steps=steps)
    return Training(dataclasses.replace(task.defaults("laptop"), training=grid), task)


def bare_seconds(training: Training) -> float:
    """A block of steps, called one after the other with their data ready."""
    order = training.order(0)
    start = time.perf_counter()
    for _ in range(BLOCK):
        training.state, _ = training.compiled(
            training.state, training.train_data, order, training.step_keys
        )
    jax.block_until_ready(training.state)
    return time.perf_counter() - start


def loop_seconds(training: Training, check: FailureCheck) -> float:
    """The same as the loop does it: order of data, records, checks."""
    start = time.perf_counter()
    records, _ = training.advance(0, BLOCK)
    check(records, 0)
    return time.perf_counter() - start


def measure(name: str, steps: int) -> list[Any]:
    """A row of the table."""
    training = training_of(name, steps)
    check = FailureCheck(training.num_steps, 1.0, training.indices, Path())
    training.warm_up()
    bare, loop = [], []
    for _ in range(ROUNDS + 1):
        bare.append(bare_seconds(training))
        loop.append(loop_seconds(training, check))
    # The first ones warm up.
    bare, loop = bare[1:], loop[1:]
    ratio = statistics.median(b / a for a, b in zip(bare, loop, strict=True))
    spread = np.quantile([b / a for a, b in zip(bare, loop, strict=True)], [0.25, 0.75])
    return [name, steps, 1e3 * statistics.median(bare) / BLOCK, ratio, *spread]


def sections(console: Console) -> list[str]:
    """All tables."""
    del console
    lines = [
        "| task | RK4 steps | bare step, ms | loop / bare | quartiles |",
        "|---|---|---|---|---|",
    ]
    for name, steps in (("digits", 8), ("digits", 2), ("toy", 4)):
        task, steps, milliseconds, ratio, low, high = measure(name, steps)
        lines.append(
            f"| {task} | {steps} | {milliseconds:.2f} | {ratio:.3f} | {low:.3f} to {high:.3f} |"
        )
    return ["\n".join(lines)]
