"""What a training step of a flow costs: rivals, quadratures, adjoints."""

from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from rich.console import Console

import taynode as tn
from taynode.models import ConcatSquashMLP, ContinuousFlow, HutchinsonDivergence, Solve, TimeConv
from taynode.models.flow import sample_part

from .measure import Cost, prepare, time_together


KEY = jr.key(0)
NUM_STEPS = 8
# A step takes long enough for its time to be told from a few.
ROUNDS = 9
WEIGHT = 0.01
RNODE = tn.RNODE(1.0, 1.0, where=sample_part)
R2, R3 = (tn.TotalDerivative(order, where=sample_part) for order in (2, 3))
CONTENDERS: dict[str, tuple[Any, Any]] = {
    "unregularized": (None, tn.Augmented()),
    "RNODE, Augmented": (RNODE, tn.Augmented()),
    "RNODE, Sampled": (RNODE, tn.Sampled()),
    "R_2, Augmented": (R2, tn.Augmented()),
    "R_2, Sampled": (R2, tn.Sampled()),
    "R_2, Sampled(batch_axis=0)": (R2, tn.Sampled(batch_axis=0)),
    "R_3, Augmented": (R3, tn.Augmented()),
    "R_3, Sampled": (R3, tn.Sampled()),
}
# Besides `RecursiveCheckpointAdjoint`, which is the default.
ADJOINTS = {
    "DirectAdjoint": dfx.DirectAdjoint(),
    "BacksolveAdjoint": dfx.BacksolveAdjoint(),
}


def tabular() -> tuple[ContinuousFlow, Any]:
    """The flow for MINIBOONE at laptop scale, and a batch."""
    field = ConcatSquashMLP((43, 172, 172, 43), jax.nn.softplus, key=KEY)
    flow = ContinuousFlow(field, (43,), HutchinsonDivergence("gaussian"))
    return flow, jr.normal(KEY, (1000, 43))


def images() -> tuple[ContinuousFlow, Any]:
    """The flow for images of 14 x 14 pixels, and a batch."""
    field = TimeConv((1, 16, 16, 16, 1), key=KEY)
    flow = ContinuousFlow(field, (14, 14, 1), HutchinsonDivergence())
    return flow, jr.normal(KEY, (32, 14, 14, 1))


def gradient(flow: ContinuousFlow, solve: Solve) -> Callable[..., Any]:
    """The gradient of the loss with respect to the parameters."""
    parameters, static = eqx.partition(flow, eqx.is_inexact_array)
    del parameters

    def loss(parameters, x, key):
        model = eqx.combine(parameters, static)
        log_prob, solution = model.log_prob(x, solve, key=key)
        return -jnp.mean(log_prob) + WEIGHT * solution.stats.get("penalty", 0.0)

    return jax.grad(loss)


def cost(flow: ContinuousFlow, x: Any, **options: Any) -> Cost:
    """Of a step on a fixed grid, so that all make the same number of evaluations."""
    solve = Solve(solver=tn.solvers.RK4(), num_steps=NUM_STEPS, **options)
    parameters = eqx.filter(flow, eqx.is_inexact_array)
    return prepare(lambda: gradient(flow, solve), (parameters, x, KEY))


def table(name: str, flow: ContinuousFlow, x: Any) -> str:
    """Times and memory, relative to the unregularized step."""
    costs = {
        contender: cost(flow, x, regularizer=regularizer, quadrature=quadrature)
        for contender, (regularizer, quadrature) in CONTENDERS.items()
    }
    for adjoint, kind in ADJOINTS.items():
        costs[f"R_2, Sampled, {adjoint}"] = cost(
            flow, x, regularizer=R2, quadrature=tn.Sampled(), adjoint=kind
        )
    time_together(costs, rounds=ROUNDS)
    plain = costs["unregularized"]
    lines = [
        f"#### {name}: {NUM_STEPS} RK4 steps, {1e3 * plain.run_seconds:.1f} ms unregularized",
        "",
        "| | time / unregularized | temporary memory MB |",
        "|---|---|---|",
    ]
    lines += [
        f"| {contender} | {c.run_seconds / plain.run_seconds:.2f} | {c.temp_bytes / 1e6:.1f} |"
        for contender, c in costs.items()
    ]
    return "\n".join(lines)


def sections(console: Console) -> list[str]:
    """All tables."""
    out = []
    for name, make in {
        "43-172-172-43 for tabular data, batch 1000": tabular,
        "Convolutions of 16 channels on 14 x 14 pixels, batch 32": images,
    }.items():
        with console.status(name):
            out.append(table(name, *make()))
    return out
