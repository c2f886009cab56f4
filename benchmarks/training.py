"""Whole steps of training with each adjoint: the gradient, the optimizer, and all else."""

import dataclasses
import statistics
import time

import jax
import jax.numpy as jnp
from rich.console import Console

from taynode.lab import find_task
from taynode.lab.config import RegularizerConfig
from taynode.lab.training.running import Training


TASKS = ("digits", "physionet", "miniboone")
ADJOINTS = {"`diffrax.RecursiveCheckpointAdjoint`": "checkpoint", "`tn.AcceptedStepAdjoint`": ""}
REGULARIZERS = {"none": RegularizerConfig(), "R_3": RegularizerConfig("r3", 1e-3)}
ROUNDS = 31
STEPS_AT_A_TIME = 50


def training_of(task: str, adjoint: str, regularizer: RegularizerConfig) -> Training:
    """A training at laptop scale."""
    found = find_task(task)
    config = dataclasses.replace(found.defaults("laptop"), regularizer=regularizer)
    if adjoint:
        solve = dataclasses.replace(config.training, adjoint=adjoint)
        config = dataclasses.replace(config, training=solve)
    return Training(config, found)


def rows(task: str) -> list[str]:
    """The rows of one task, in the middle of training. Steps are made in turn.

    Evaluations rise in training. So there is one training for half of its steps, unregularized,
    and all rows go on from there.
    """
    trainings = {
        (regularizer, adjoint): training_of(task, ADJOINTS[adjoint], REGULARIZERS[regularizer])
        for regularizer in REGULARIZERS
        for adjoint in ADJOINTS
    }
    warm = trainings["none", "`tn.AcceptedStepAdjoint`"]
    middle = warm.num_steps // 2
    for step in range(0, middle, STEPS_AT_A_TIME):
        warm.advance(step, min(STEPS_AT_A_TIME, middle - step))
    state = warm.state
    for training in trainings.values():
        # A step takes the memory of its state.
        training.state = jax.tree.map(jnp.copy, state)
        training.advance(middle, 1)
    seconds = {key: [] for key in trainings}
    nfe = {key: [] for key in trainings}
    for step in range(middle + 1, middle + 1 + ROUNDS):
        for key, training in trainings.items():
            start = time.process_time()
            record, _ = training.advance(step, 1)
            seconds[key].append(time.process_time() - start)
            nfe[key].append(float(record.nfe[0]))
    median = {key: statistics.median(x) for key, x in seconds.items()}
    first = next(iter(ADJOINTS))
    return [
        f"| {task} | {regularizer} | {adjoint} | {statistics.mean(nfe[regularizer, adjoint]):.1f} "
        f"| {1e3 * median[regularizer, adjoint]:.2f} ms "
        f"| {median[regularizer, adjoint] / median[regularizer, first]:.2f} "
        f"| {median[regularizer, adjoint] / median['none', adjoint]:.2f} |"
        for regularizer, adjoint in trainings
    ]


def sections(console: Console) -> list[str]:
    """The table."""
    jax.config.update("jax_enable_x64", True)
    lines = [
        "| task | regularizer | adjoint | NFE | step | / diffrax | / without regularizer |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        console.print(task)
        lines += rows(task)
    return ["\n".join(lines)]
