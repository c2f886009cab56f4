"""The gradient of the squared K-th derivative, which is what a training step pays for."""

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.progress import track

from .contenders import CONTENDERS
from .measure import Cost, prepare, time_together
from .models import MODELS


ORDERS = range(1, 9)
# Compiling the gradient of nested jvp takes minutes from here on: it grows by a factor of 3 an
# order.
LAST_NESTED = 6


def gradient_of_penalty(contender, field, order):
    """d/d(args, y) of the mean square of d^order y/dt^order."""

    def penalty(args, y):
        return jnp.mean(contender(field, jnp.array(0.3), y, args, order) ** 2)

    return jax.grad(penalty, argnums=(0, 1))


def measure_model(name: str, console: Console) -> dict[int, dict[str, Cost]]:
    """All contenders at all orders; the key "gradient of f" is the field's own gradient."""
    field, params, y = MODELS[name]()
    results = {}
    for order in track(ORDERS, description=name, console=console, transient=True):
        costs = {"gradient of f": prepare(lambda: _own_gradient(field), (params, y))}
        for label, contender in CONTENDERS.items():
            if label == "nested jvp" and order > LAST_NESTED:
                continue
            costs[label] = prepare(
                lambda c=contender, k=order: gradient_of_penalty(c, field, k),
                (params, y),
                compilations=3,
            )
        time_together(costs)
        results[order] = costs
    return results


def sections(console: Console) -> list[str]:
    """All tables."""
    return [
        f"#### {name}, batch 100, float32\n\n{as_markdown(measure_model(name, console))}"
        for name in MODELS
    ]


def _own_gradient(field):
    return jax.grad(
        lambda params, y: jnp.mean(field(jnp.array(0.3), y, params) ** 2), argnums=(0, 1)
    )


def as_markdown(results: dict[int, dict[str, Cost]]) -> str:
    """A table of one model."""
    lines = [
        "| K | taynode ms | / K gradients of f | / jet | / nested jvp "
        "| trace + compile s: taynode, jet, nested | products: taynode, jet, nested "
        "| temporary memory MB: taynode, jet, nested |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for order, costs in results.items():
        ours, base = costs["taynode"], costs["gradient of f"]

        def ratio(label, costs=costs, ours=ours):
            return f"{ours.run_seconds / costs[label].run_seconds:.2f}" if label in costs else "-"

        def each(show, costs=costs):
            return ", ".join(show(costs[c]) if c in costs else "-" for c in CONTENDERS)

        lines.append(
            f"| {order} | {1e3 * ours.run_seconds:.3f} "
            f"| {ours.run_seconds / (order * base.run_seconds):.2f} "
            f"| {ratio('jet')} | {ratio('nested jvp')} "
            f"| {each(lambda c: f'{c.compile_seconds:.2f}')} "
            f"| {each(lambda c: str(c.num_products))} "
            f"| {each(lambda c: f'{c.temp_bytes / 1e6:.2f}')} |"
        )
    return "\n".join(lines)
