"""`python -m benchmarks.rivals`: a step of training with each method of the studies `rivals-*`.

100 steps at initial and at final parameters, with the settings of the studies, in turn: ten steps
with each method, then ten more with each. A ratio compares ten steps with the unregularized ones
just before. The learning rate is so small that parameters stay as they are. Measurements by which a
budget follows evaluations are part of the steps. Final parameters are those of the first seed of a
study that has been done by `taynode paper run rivals`; without them, there are numbers for initial
ones alone. Each method is compiled once for each task, which takes longer than the steps. It needs
a quiet machine.
"""

import argparse
import dataclasses
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from taynode.lab import find_task
from taynode.lab.files import write_json
from taynode.lab.paper import find_study
from taynode.lab.paper.rival_claims import end_of, GIVEN
from taynode.lab.paper.study import FAMILIES
from taynode.lab.sweep.directory import name_of_parameters
from taynode.lab.sweep.plan import Job
from taynode.lab.sweep.results import MODELS
from taynode.lab.training.parameters import read_parameters
from taynode.lab.training.running import Training
from taynode.lab.training.step import TrainState

from .measure import machine


TASKS = FAMILIES["rivals"].members
STEPS, BLOCK = 100, 10
# Added to a parameter, a step of this length changes nothing.
STILL = 1e-30


class Stepper:
    """A method, and its states at initial and at final parameters."""

    def __init__(self, job: Job, runs: Path):
        optimizer = dataclasses.replace(job.config.optimizer, learning_rate=STILL)
        config = dataclasses.replace(job.config, optimizer=optimizer)
        self.training = Training(config, find_task(config.task))
        self.states: dict[str, TrainState] = {"initial": self.training.state}
        file = runs / MODELS / name_of_parameters(job)
        if file.exists():
            model, _ = read_parameters(file, self.training.model)
            arrays = eqx.filter(model, eqx.is_array)
            self.states["final"] = dataclasses.replace(self.training.state, arrays=arrays)

    def begin(self, at: str) -> None:
        """Go to initial or final parameters, and warm up."""
        # A step takes the memory of its state.
        self.training.state = jax.tree.map(jnp.copy, self.states[at])
        self.training.advance(0, 1)
        self.training.state = jax.tree.map(jnp.copy, self.states[at])

    def steps(self, first: int) -> tuple[float, float]:
        """The seconds and the mean evaluations of a block of steps."""
        start = time.process_time()
        records, _ = self.training.advance(first, BLOCK)
        return time.process_time() - start, float(np.mean(records.nfe))


def measured(steppers: dict[str, Stepper], at: str, num_steps: int) -> dict[str, Any]:
    """Ratios to unregularized steps, by method."""
    present = {name: stepper for name, stepper in steppers.items() if at in stepper.states}
    if GIVEN not in present:
        return {}
    for stepper in present.values():
        stepper.begin(at)
    seconds: dict[str, list[float]] = {name: [] for name in present}
    nfe: dict[str, list[float]] = {name: [] for name in present}
    for first in range(0, num_steps, BLOCK):
        for name, stepper in present.items():
            took, evaluations = stepper.steps(first)
            seconds[name].append(took)
            nfe[name].append(evaluations)
    found = {}
    for name, took in seconds.items():
        ratios = [a / b for a, b in zip(took, seconds[GIVEN], strict=True)]
        low, middle, high = (float(x) for x in np.quantile(ratios, [0.25, 0.5, 0.75]))
        found[name] = {
            "ratio": round(middle, 3),
            "quartiles": [round(low, 3), round(high, 3)],
            "milliseconds": round(1e3 * statistics.median(took) / BLOCK, 3),
            "nfe": round(statistics.mean(nfe[name]), 1),
        }
    return found


def of_task(task: str, runs: Path, num_steps: int, methods: list[str]) -> dict[str, Any]:
    """The numbers of a task: those of each method at initial and at final parameters."""
    study: Any = find_study(f"rivals-{task}")
    jobs = dict(zip(study.rivals, study.jobs("laptop", [0]), strict=True))
    chosen = [name for name in study.methods if not methods or name in methods]
    ends = {name: end_of(study.methods[name]) for name in chosen}
    rows = {GIVEN: GIVEN, **ends}
    steppers = {name: Stepper(jobs[row], runs) for name, row in rows.items()}
    parts = {at: measured(steppers, at, num_steps) for at in ("initial", "final")}
    return {"machine": machine(), "steps": num_steps, **parts}


def main() -> None:
    """Measure, and add the numbers to a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--methods", nargs="+", default=[], help="only these")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--runs", type=Path, default=Path("results/laptop/runs"))
    parser.add_argument("--out", type=Path, default=Path("results/laptop/rivals-steps.json"))
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    jax.config.update("jax_enable_x64", True)
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    for task in options.tasks:
        known[task] = of_task(task, options.runs, options.steps, options.methods)
        write_json(options.out, known)
        for at in ("initial", "final"):
            for name, row in known[task][at].items():
                low, high = row["quartiles"]
                print(
                    f"{task:12} {at:8} {name:32} {row['ratio']:.2f} ({low:.2f} to {high:.2f}) "
                    f"{row['milliseconds']:.2f} ms, NFE {row['nfe']:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
