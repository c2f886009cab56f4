"""What a gradient through a solve costs beside the gradients of f that it consists of.

The unit is the number of evaluations of f in the forward solve times one value and gradient of f
with respect to the state and the parameters, inside of a compiled loop. The bound is the cost of
evaluating each stage twice, and of its vjp.
"""

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
from rich.console import Console

import taynode as tn

from .measure import prepare


ROUNDS = 21
REPEATS = 20
MOST_STEPS = (16, 64, 256, 1024, 4096, None)
ADJOINTS = {
    "`diffrax.RecursiveCheckpointAdjoint`": dfx.RecursiveCheckpointAdjoint(),
    "`tn.AcceptedStepAdjoint`": tn.AcceptedStepAdjoint(),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A field with one hidden layer, and how it is solved."""

    name: str
    width: int
    hidden: int
    batch: int
    wildness: float = 2.0
    tolerance: float = 1e-5
    per_sample: bool = False
    num_times: int | None = None
    t1: float = 1.0
    dtype: Any = jnp.float32

    def problem(self) -> tuple[Any, jax.Array]:
        """Parameters and states."""
        keys = jr.split(jr.key(0), 3)
        shapes = (self.width + 1, self.hidden), (self.hidden + 1, self.width)
        parameters = [
            jr.normal(key, shape, self.dtype) * (self.wildness / math.sqrt(shape[0]))
            for key, shape in zip(keys, shapes, strict=False)
        ]
        return parameters, jr.normal(keys[2], (self.batch, self.width), self.dtype)

    def solve(
        self,
        adjoint: dfx.AbstractAdjoint,
        y0: jax.Array,
        parameters: Any,
        *,
        max_steps: int | None = 4096,
    ) -> dfx.Solution:
        """Solve from 0 to `t1`."""
        t0, t1, dt0 = (jnp.array(t, self.dtype) for t in (0.0, self.t1, 0.05))
        ts = None if self.num_times is None else jnp.linspace(t0, t1, self.num_times)
        return dfx.diffeqsolve(
            dfx.ODETerm(field),
            dfx.Dopri5(),
            t0,
            t1,
            dt0,
            y0,
            parameters,
            saveat=dfx.SaveAt(t1=True) if ts is None else dfx.SaveAt(ts=ts),
            stepsize_controller=dfx.PIDController(rtol=self.tolerance, atol=self.tolerance),
            adjoint=adjoint,
            max_steps=max_steps,
        )

    def batched(self, function: Callable) -> Callable:
        """A function of (adjoint, y0, parameters) for the whole batch."""
        return jax.vmap(function, in_axes=(None, 0, None)) if self.per_sample else function


CASES = [
    Case("784-100-784, batch 100", 784, 100, 100, 3.0),
    Case("784-100-784, batch 100, until t = 8", 784, 100, 100, 3.0, t1=8.0),
    Case("20-50-20, batch 150", 20, 50, 150, 3.0),
    Case("20-50-20, batch 150, until t = 8", 20, 50, 150, 3.0, t1=8.0),
    Case("20-50-20, batch 150, 49 times", 20, 50, 150, 3.0, num_times=49),
    Case("20-50-20, 100 solves under vmap", 20, 50, 100, 3.0, per_sample=True),
    Case("20-50-20, batch 150, float64 at 1.4e-8", 20, 50, 150, 3.0, 1.4e-8, dtype=jnp.float64),
]


def field(t, y, parameters):
    """Two layers, with the time as an input of both."""
    first, second = parameters
    time = jnp.broadcast_to(jnp.asarray(t, y.dtype), (*y.shape[:-1], 1))
    hidden = jnp.tanh(jnp.concatenate([time, jnp.tanh(y)], -1) @ first)
    return jnp.concatenate([time, hidden], -1) @ second


def unit(y: jax.Array, parameters: Any, *, with_gradient: bool) -> Callable[[], Any]:
    """Evaluations of f, or of its gradient, in a compiled loop."""

    def step(i, carry):
        y, parameters = carry
        t = jnp.asarray(i, y.dtype) / REPEATS
        if not with_gradient:
            return 0.1 * field(t, y, parameters), parameters
        gradients = jax.grad(lambda y, p: jnp.mean(field(t, y, p) ** 2), (0, 1))(y, parameters)
        return jax.tree.map(lambda x, g: x - 1e-9 * g, carry, gradients)

    run = jax.jit(lambda carry: jax.lax.fori_loop(0, REPEATS, step, carry))
    return lambda: run((y, parameters))


def medians(functions: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Medians of the time of functions that run in turn, in seconds of the process."""
    times = {name: [] for name in functions}
    for run in functions.values():
        jax.block_until_ready(run())
    for _ in range(ROUNDS):
        for name, run in functions.items():
            start = time.process_time()
            jax.block_until_ready(run())
            times[name].append(time.process_time() - start)
    return {name: statistics.median(x) for name, x in times.items()}


def rows(case: Case) -> list[str]:
    """The rows of one case."""
    parameters, y0 = case.problem()
    attempts = case.batched(lambda *x: case.solve(*x).stats["num_steps"])
    num_steps = jax.jit(attempts, static_argnums=0)(dfx.ForwardMode(), y0, parameters)
    nfe = 1 + 6 * int(jnp.max(num_steps))
    ends = case.batched(lambda *x: case.solve(*x).ys)

    def gradient(adjoint):
        run = jax.jit(jax.grad(lambda p: jnp.mean(ends(adjoint, y0, p) ** 2)))
        return lambda: run(parameters)

    functions = {name: gradient(adjoint) for name, adjoint in ADJOINTS.items()}
    functions["f"] = unit(y0, parameters, with_gradient=False)
    functions["gradient"] = unit(y0, parameters, with_gradient=True)
    found = medians(functions)
    one = found["gradient"] / REPEATS
    bound = 1 + found["f"] / found["gradient"]
    first = found[next(iter(ADJOINTS))]
    return [
        f"| {case.name} | {nfe} | {name} | {1e3 * seconds:.2f} ms | {seconds / nfe / one:.2f} "
        f"| {seconds / first:.2f} | {bound:.2f} |"
        for name, seconds in ((name, found[name]) for name in ADJOINTS)
    ]


def memory_rows(case: Case) -> list[str]:
    """Temporary memory of the compiled gradient. It is known before any step is made."""
    parameters, y0 = case.problem()
    lines = []
    for max_steps in MOST_STEPS:
        cells = []
        for adjoint in ADJOINTS.values():
            if max_steps is None and isinstance(adjoint, dfx.RecursiveCheckpointAdjoint):
                cells.append("refused")
                continue

            def loss(p, adjoint=adjoint, max_steps=max_steps):
                ys = jnp.asarray(case.solve(adjoint, y0, p, max_steps=max_steps).ys)
                return jnp.mean(ys**2)

            cost = prepare(lambda loss=loss: jax.grad(loss), (parameters,))
            cells.append(f"{cost.temp_bytes / 1e6:.2f}")
        lines.append(f"| {case.name} | {max_steps or 'any number'} | {' | '.join(cells)} |")
    return lines


def sections(console: Console) -> list[str]:
    """The tables of times and of memory."""
    jax.config.update("jax_enable_x64", True)
    lines = [
        "| field | NFE | adjoint | gradient | / (NFE x gradient of f) | / diffrax | bound |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in CASES:
        console.print(case.name)
        lines += rows(case)
    memory = [
        f"| field | `max_steps` | {', MB | '.join(ADJOINTS)}, MB |",
        "|---|---|---|---|",
    ]
    for case in (CASES[0], CASES[2]):
        console.print(f"{case.name}: memory")
        memory += memory_rows(case)
    return ["\n".join(lines), "\n".join(memory)]
