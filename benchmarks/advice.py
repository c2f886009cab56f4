"""`python -m benchmarks.advice RUN...`: whether the advice of `tn.advise` holds on other inputs.

Each RUN is the directory of a run of `taynode train`. `tn.advise` sees training samples. What it
recommends is then measured on test samples, beside the cheapest setting there. A stiff van der Pol
oscillator comes last. Takes a minute or two per run.
"""

import sys
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import Array, Float

import taynode as tn
from taynode.advice.measure import measure
from taynode.advice.problem import InitialValues, solve_exactly
from taynode.lab import load
from taynode.lab.report.paths import initial_state_of, interval_of, ordinary_field_of
from taynode.lab.training.build import make_solve
from taynode.models import Solve


NUM_SAMPLES = 64
RTOL = ATOL = 1e-3
STIFFNESS = 200.0
MAX_STEPS = 2**14


class Case(NamedTuple):
    """A vector field, inputs that are seen and others, and the setting in use."""

    name: str
    field: Callable
    seen: Array
    unseen: Array
    t0: float
    t1: float
    present: Solve


def case_of(path: str) -> Case:
    """The model of a run, with training samples and test samples."""
    run = load(path, precision="float64")
    start = lambda data: initial_state_of(
        run.task, run.model, jtu.tree_map(lambda x: x[:NUM_SAMPLES], data)
    )
    t0, t1 = interval_of(run.task)
    return Case(
        name=run.config.task,
        field=ordinary_field_of(run.task, run.model),
        seen=start(run.data.train),
        unseen=start(run.data.test),
        t0=t0,
        t1=t1,
        present=make_solve(run.config.evaluation),
    )


def van_der_pol() -> Case:
    """A stiff oscillator, with the setting that most people would take."""

    def field(t, y: Float[Array, "2"], args) -> Float[Array, "2"]:
        del t, args
        return jnp.stack([y[1], STIFFNESS * (1 - y[0] ** 2) * y[1] - y[0]])

    starts = jr.uniform(jr.key(0), (8, 2), minval=-2.0, maxval=2.0)
    present = Solve(max_steps=MAX_STEPS)
    return Case("van der Pol", field, starts[:4], starts[4:], 0.0, 20.0, present)


def main(paths: list[str]) -> None:
    """Print a row for each model."""
    jax.config.update("jax_enable_x64", True)
    print(
        "| model | recommended | NFE on other inputs | error | cheapest there | ratio | present |"
    )
    print("|---|---|---|---|---|---|---|")
    options = {"rtol": RTOL, "atol": ATOL, "max_steps": MAX_STEPS}
    for case in [*map(case_of, paths), van_der_pol()]:
        time = case.t0, case.t1
        advice = tn.advise(case.field, case.seen, *time, **options)
        there = tn.advise(case.field, case.unseen, *time, present=case.present, **options)
        problem = InitialValues(case.field, case.unseen, *time, None)
        exact = solve_exactly(problem, RTOL, ATOL)
        if advice.best is None or there.best is None or there.audit is None:
            print(f"| {case.name} | nothing is accurate enough |")
            continue
        found, cheapest, present = measure(problem, exact, advice.solve), there.best, there.audit
        # Where time decides, it is compared.
        cost = (lambda m: m.seconds) if there.stiffness.is_stiff else (lambda m: m.nfe)
        print(
            f"| {case.name} | {found.solver} {found.rtol:.1e} | {found.nfe:.1f} | "
            f"{found.error:.2f} | {cheapest.solver} {cheapest.rtol:.1e} {cheapest.nfe:.1f} | "
            f"{cost(found) / cost(cheapest):.2f} | {present.present.nfe:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
