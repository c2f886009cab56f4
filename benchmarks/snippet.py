"""What the penalty adds to a training step of the README's example, in gradients of its field."""

import pathlib
import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from rich.console import Console

from .measure import Cost, prepare, time_together


README = pathlib.Path(__file__).parents[1] / "README.md"
# What distinguishes the example from the same code without a regularizer.
KEYWORDS = re.compile(r"^ +(regularizer|quadrature|key)=.*\n", re.MULTILINE)
PENALTY = re.compile(r'sol\.stats\["penalty"\]')
# Rows and hidden units: as in the README, and as for a model that is worth the trouble.
SIZES = {"as in the README": (10, 64), "1000 rows, 256 hidden units": (1000, 256)}


def example(code: str, num_rows: int, width: int) -> dict[str, Any]:
    """The names that the example defines, for another size of batch and network."""
    code = code.replace("width_size=64", f"width_size={width}")
    code = code.replace("20).reshape(10, 2)", f"{2 * num_rows}).reshape({num_rows}, 2)")
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def training_step(names: dict[str, Any]) -> Cost:
    """The gradient of the example's loss."""
    mlp, static = eqx.partition(names["mlp"], eqx.is_inexact_array)
    objective, x = names["objective"], names["x"]
    step = lambda mlp, x, key: objective(eqx.combine(mlp, static), 0.1, x, x**3, key)
    return prepare(lambda: step, (mlp, x, jax.random.key(1)))


def field_gradient(names: dict[str, Any]) -> Cost:
    """The gradient of the field, with respect to its parameters and the state."""
    mlp, static = eqx.partition(names["mlp"], eqx.is_inexact_array)
    field = lambda both: jnp.sum(names["vector_field"](0.5, both[1], eqx.combine(both[0], static)))
    return prepare(lambda: jax.grad(field), ((mlp, names["x"]),))


def sections(console: Console) -> list[str]:
    """One table."""
    code = next(iter(re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)))
    plain = PENALTY.sub("jnp.zeros(())", KEYWORDS.sub("", code))
    lines = [
        "#### The README's example: R_3, `Sampled(batch_axis=0)`, Dopri5 at 1e-5",
        "",
        "| | unregularized step, ms | regularized / unregularized | added gradients of f |",
        "|---|---|---|---|",
    ]
    for label, size in SIZES.items():
        with console.status(f"README's example, {label}"):
            costs = {
                "plain": training_step(example(plain, *size)),
                "regularized": training_step(example(code, *size)),
                "field": field_gradient(example(code, *size)),
            }
            time_together(costs, rounds=31)
        seconds = {name: cost.run_seconds for name, cost in costs.items()}
        added = (seconds["regularized"] - seconds["plain"]) / seconds["field"]
        ratio = seconds["regularized"] / seconds["plain"]
        lines.append(f"| {label} | {1e3 * seconds['plain']:.3f} | {ratio:.3f} | {added:.2f} |")
    return ["\n".join(lines)]
