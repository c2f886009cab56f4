"""`python -m benchmarks.latency RUN...`: what an answer of a trained classifier costs.

Each RUN is the directory of a run of `taynode train` on a classification task. Its model is solved
as its evaluations are, and with the cheapest setting that `tn.advise` finds, for batches of several
sizes. A run that was trained on one step of Euler is a residual block: it is solved on that step,
and is the network of fixed depth that the others are compared with. Prints a row for each run:
test error, evaluations, and milliseconds per batch, measured in turn.
"""

import sys
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import Array

import taynode as tn
from taynode.lab import load
from taynode.lab.report.paths import initial_state_of, interval_of, ordinary_field_of
from taynode.lab.tasks.base import Batch
from taynode.lab.training.build import make_solve
from taynode.models import NeuralODEClassifier, Solve

from .measure import Cost, machine, prepare, time_together


BATCHES = (1, 100, 1000)
# Samples that the solver and the tolerance are chosen on, and the accuracy that is asked for.
NUM_SEEN, RTOL, ATOL = 64, 1e-3, 1e-3


class Candidate(NamedTuple):
    """A model with a way to solve it."""

    name: str
    model: NeuralODEClassifier
    solve: Solve
    test: Batch


def candidates_of(path: str) -> list[Candidate]:
    """The model of a run, solved as its evaluations are and as `tn.advise` says, or on one step."""
    run = load(path)
    config = run.config
    regularizer = config.regularizer
    budget = f", budget {regularizer.budget:g}" if regularizer.budget else ""
    name = f"{regularizer.name}{budget}"
    if config.training.steps == 1:
        return [Candidate("fixed depth", run.model, make_solve(config.training), run.data.test)]
    usual = Candidate(name, run.model, make_solve(config.evaluation), run.data.test)
    few = jtu.tree_map(lambda x: x[:NUM_SEEN], run.data.train)
    advice = tn.advise(
        ordinary_field_of(run.task, run.model),
        initial_state_of(run.task, run.model, few),
        *interval_of(run.task),
        rtol=RTOL,
        atol=ATOL,
    )
    if advice.best is None:
        return [usual]
    cheap = f"{name}, {advice.best.solver} at {advice.best.rtol:.1e}"
    return [usual, Candidate(cheap, run.model, advice.solve, run.data.test)]


def answer(candidate: Candidate, inputs: Array) -> Callable[[], Callable]:
    """A function that makes the model of a batch, to be compiled."""
    arrays, static = eqx.partition(candidate.model, eqx.is_array)

    def make() -> Callable[[], Array]:
        def logits() -> Array:
            model = eqx.combine(arrays, static)
            return model(inputs, candidate.solve, key=jr.key(0))[0]

        return logits

    return make


def error_of(candidate: Candidate) -> float:
    """The share of wrong answers on all test samples."""
    logits = answer(candidate, jnp.asarray(candidate.test.inputs))()()
    return float(jnp.mean(jnp.argmax(logits, axis=-1) != jnp.asarray(candidate.test.labels)))


def evaluations_of(candidate: Candidate) -> float:
    """The evaluations of the vector field for one test sample, as a mean."""
    inputs = jnp.asarray(candidate.test.inputs[:NUM_SEEN])[:, None]
    stats = jax.vmap(lambda x: candidate.model(x, candidate.solve, key=jr.key(0))[1].stats)(inputs)
    return float(jnp.mean(stats["nfe"]))


def main(paths: list[str]) -> None:
    """Print a row for each model."""
    if not paths:
        sys.exit("Pass the directories of runs: `python -m benchmarks.latency RUN...`.")
    candidates = [each for path in paths for each in candidates_of(path)]
    costs: dict[int, list[Cost]] = {}
    for size in BATCHES:
        inputs = jnp.asarray(candidates[0].test.inputs[:size])
        costs[size] = [prepare(answer(each, inputs), ()) for each in candidates]
        time_together({str(i): cost for i, cost in enumerate(costs[size])})
    sizes = " | ".join(f"ms, batch of {size}" for size in BATCHES)
    print(f"| model | test error | NFE | {sizes} |")
    print("|" + "---|" * (3 + len(BATCHES)))
    for i, each in enumerate(candidates):
        times = " | ".join(f"{1e3 * costs[size][i].run_seconds:.3g}" for size in BATCHES)
        error, nfe = error_of(each), evaluations_of(each)
        print(f"| {each.name} | {100 * error:.2f} % | {nfe:.1f} | {times} |", flush=True)
    print(f"\n{machine()}")


if __name__ == "__main__":
    main(sys.argv[1:])
