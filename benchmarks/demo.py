"""What the Taylor engine does, in a table: `python -m benchmarks.demo`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from rich.console import Console
from rich.live import Live
from rich.table import Table

import taynode as tn

from .contenders import by_repeated_jet, CONTENDERS
from .measure import prepare, time_together
from .models import small_field
from .taylor import gradient_of_penalty


ORDERS = range(1, 9)
# Compiling the gradient of nested jvp takes too long for a demo from here on.
LAST_NESTED = 5


def main() -> None:
    """Fill the table row by row, then show a network that `jax.experimental.jet` cannot do."""
    console = Console()
    console.print(
        "\nA neural ODE is slow to solve when the K-th derivative of its solution is large.\n"
        "The penalty on it is trained through, so what counts is the cost of its gradient.\n"
    )
    table = Table(title="Gradient of |d^K y/dt^K|^2, MLP 2-64-64-2, batch 100")
    for column in (
        "K",
        "error against nested jvp",
        "time in gradients of f",
        "jet takes",
        "nested jvp takes",
        "matrix products (jet, nested)",
    ):
        table.add_column(column, justify="right")
    with Live(table, console=console, refresh_per_second=4):
        for order in ORDERS:
            table.add_row(*_row(order))
    _networks(console)


def _row(order: int) -> list[str]:
    field, params, y = small_field()
    contenders = {
        name: c for name, c in CONTENDERS.items() if name != "nested jvp" or order <= LAST_NESTED
    }
    costs = {
        name: prepare(lambda c=c: gradient_of_penalty(c, field, order), (params, y))
        for name, c in contenders.items()
    }
    costs["f"] = prepare(lambda: gradient_of_penalty(CONTENDERS["taynode"], field, 1), (params, y))
    time_together(costs, rounds=7)
    ours = costs["taynode"].run_seconds

    def times(name):
        return f"{costs[name].run_seconds / ours:.1f}x" if name in costs else "-"

    return [
        str(order),
        _error(order),
        f"{ours / costs['f'].run_seconds:.1f}",
        times("jet"),
        times("nested jvp"),
        f"{costs['taynode'].num_products} "
        f"({', '.join(str(costs[c].num_products) for c in contenders if c != 'taynode')})",
    ]


def _error(order: int) -> str:
    """Largest relative error of the derivative itself, in double precision."""
    with jax.enable_x64(True):
        field, params, y = small_field()
        t = jnp.array(0.3)
        got, expected = (
            jax.jit(lambda c=c: CONTENDERS[c](field, t, y, params, order))()
            for c in ("taynode", "nested jvp")
        )
        return f"{float(jnp.max(jnp.abs(got - expected)) / jnp.max(jnp.abs(expected))):.0e}"


def _networks(console: Console) -> None:
    mlp = eqx.nn.MLP(2, 2, 64, 2, key=jr.key(0))
    y = jnp.array([0.3, -0.4])

    def field(t, y, args):
        return mlp(y)

    console.print("\nThe default [bold]equinox.nn.MLP[/bold] (relu), third derivative:")
    console.print(f"  taynode: {tn.solution_derivatives(field, 0.0, y, order=3)[-1]}")
    try:
        console.print(
            f"  jax.experimental.jet: {by_repeated_jet(field, jnp.zeros(()), y, None, 3)}"
        )
    except Exception as error:
        console.print(f"  jax.experimental.jet: {type(error).__name__}")


if __name__ == "__main__":
    main()
