"""Whole steps of training with each adjoint: the gradient, the optimizer, and all else."""

import dataclasses
import statistics
import time

import jax
from rich.console import Console

from taynode.lab import find_task
from taynode.lab.config import RegularizerConfig
from taynode.lab.training.running import Training


TASKS = ("digits", "physionet", "miniboone")
ADJOINTS = {"`diffrax.RecursiveCheckpointAdjoint`": "checkpoint", "`tn.AcceptedStepAdjoint`": ""}
REGULARIZERS = {"none": RegularizerConfig(), "R_3": RegularizerConfig("r3", 1e-3)}
# Evaluations rise in the first steps.
WARM_UP, ROUNDS = 100, 31


def training_of(task: str, adjoint: str, regularizer: RegularizerConfig) -> Training:
    """A training at laptop scale, after some steps."""
    found = find_task(task)
    config = dataclasses.replace(found.defaults("laptop"), regularizer=regularizer)
    if adjoint:
        solve = dataclasses.replace(config.training, adjoint=adjoint)
        config = dataclasses.replace(config, training=solve)
    training = Training(config, found)
    training.advance(0, WARM_UP)
    return training


def rows(task: str) -> list[str]:
    """The rows of one task. All trainings make their steps in turn."""
    trainings = {
        (regularizer, adjoint): training_of(task, ADJOINTS[adjoint], REGULARIZERS[regularizer])
        for regularizer in REGULARIZERS
        for adjoint in ADJOINTS
    }
    seconds = {key: [] for key in trainings}
    nfe = {key: [] for key in trainings}
    for step in range(WARM_UP, WARM_UP + ROUNDS):
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
