"""Taylor mode against nested differentiation: what the K-th derivative costs."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .chart import Chart, Line, Panel
from .statistics import spread
from .study import AbstractStudy, Claim, seeds_agree, verdict


ORDERS = (1, 2, 3, 4, 5, 6)
METHODS = ("Taylor mode", "nested jvp")
ROUNDS = 9


class TaylorCost(AbstractStudy):
    """The gradient of R_K at a point, for the paper's classifier of MNIST."""

    name: ClassVar[str] = "taylor-cost"
    title: ClassVar[str] = "The cost of R_K's gradient in time, by order"
    num_seeds: ClassVar[int] = 0

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """Milliseconds by method and order: medians of rounds in which all take their turns."""
        del results
        orders = ORDERS[:3] if scale == "smoke" else ORDERS
        calls = {(method, order): _call(method, order) for method in METHODS for order in orders}
        times: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
        for _ in range(ROUNDS):
            for key, call in calls.items():
                start = time.perf_counter()
                call()
                times[key].append(1e3 * (time.perf_counter() - start))
        return {
            "orders": list(orders),
            **{
                method: [statistics.median(times[method, order]) for order in orders]
                for method in METHODS
            },
            # Of each round, for the spread.
            "ratios": [
                [a / b for a, b in zip(*(times[x, order] for x in METHODS[::-1]), strict=True)]
                for order in orders
            ],
        }

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """Times over orders."""
        marks = [
            Line(numbers["orders"], numbers[method], method, i + 1)
            for i, method in enumerate(METHODS)
        ]
        return Chart([Panel(marks, x="K", y="gradient of R_K at a point, ms", y_log=True)])

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """Polynomial against exponential growth."""
        ratios, orders = numbers["ratios"], numbers["orders"]
        third = ratios[orders.index(3)]
        misfits = {method: fit_errors(orders[1:], numbers[method][1:]) for method in METHODS}
        words = [
            f"{method}: off an exponential by {x['exponential']:.0%}, a power by {x['power']:.0%}"
            for method, x in misfits.items()
        ]
        taylor, nested = (misfits[method] for method in METHODS)
        fits = (
            nested["exponential"] < nested["power"] and taylor["power"] < taylor["exponential"]
            if len(orders) > 3
            else None
        )
        return [
            Claim(
                "At K = 3, Taylor mode is an order of magnitude faster than nested differentiation",
                "an order of magnitude",
                f"{spread(third)} times as fast, {spread(ratios[-1])} at K = {orders[-1]}",
                verdict(seeds_agree(third, at_least=10.0)),
            ),
            Claim(
                "Nested differentiation grows exponentially with K, Taylor mode as a power of it",
                "O(exp K) and O(K^2)",
                "; ".join(words),
                verdict(fits),
            ),
        ]


def fit_errors(orders: Sequence[int], times: Sequence[float]) -> dict[str, float]:
    """How far times are from the best exponential and from the best power of the order.

    Root mean squares of the distances of logarithms, which are about those of the times as shares.
    """
    import numpy as np

    y, out = np.log(times), {}
    for name, x in {"exponential": np.asarray(orders, float), "power": np.log(orders)}.items():
        rest = y - np.polyval(np.polyfit(x, y, 1), x)
        out[name] = float(np.sqrt(np.mean(rest**2)))
    return out


def _call(method: str, order: int) -> Callable[[], Any]:
    """The compiled gradient, ready to be timed."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import jax.random as jr

    from ..models import NeuralODEClassifier
    from ..taylor import solution_derivatives

    key = jr.key(0)
    field = NeuralODEClassifier(784, 100, 10, key=key).vector_field
    y = jr.normal(key, (100, 784))

    def penalty(field: Any, y: Any) -> Any:
        if method == "Taylor mode":
            derivative = solution_derivatives(field, jnp.array(0.3), y, order=order)[-1]
        else:
            derivative = _nested(field, order)(jnp.array(0.3), y)
        return jnp.mean(derivative**2)

    gradient = eqx.filter_jit(eqx.filter_grad(penalty))
    call = lambda: jax.block_until_ready(gradient(field, y))
    call()
    return call


def _nested(field: Any, order: int) -> Callable[[Any, Any], Any]:
    import jax
    import jax.numpy as jnp

    derivative = lambda t, y: field(t, y, None)
    for _ in range(order - 1):
        derivative = lambda t, y, of=derivative: jax.jvp(
            of, (t, y), (jnp.ones_like(t), field(t, y, None))
        )[1]
    return derivative
