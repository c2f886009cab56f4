"""Taylor mode against nested differentiation: what the K-th derivative costs."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .chart import Chart, Line, Panel
from .study import AbstractStudy, Claim, verdict


ORDERS = (1, 2, 3, 4, 5, 6)
METHODS = ("Taylor mode", "nested jvp")
REPEATS = 7


class TaylorCost(AbstractStudy):
    """The gradient of R_K at a point, for the paper's classifier of MNIST."""

    name: ClassVar[str] = "taylor-cost"
    title: ClassVar[str] = "The cost of R_K's gradient in time, by order"

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """Milliseconds by method and order, medians of several calls."""
        del results
        orders = ORDERS[:3] if scale == "smoke" else ORDERS
        return {
            "orders": list(orders),
            **{method: [_milliseconds(method, order) for order in orders] for method in METHODS},
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
        ratios = [a / b for a, b in zip(numbers["nested jvp"], numbers["Taylor mode"], strict=True)]
        third = ratios[numbers["orders"].index(3)]
        growth = {
            method: math.exp(
                math.log(numbers[method][-1] / numbers[method][1])
                / (numbers["orders"][-1] - numbers["orders"][1])
            )
            for method in METHODS
        }
        return [
            Claim(
                "At K = 3, Taylor mode is an order of magnitude faster than nested differentiation",
                "an order of magnitude",
                f"{third:.1f} times as fast, {ratios[-1]:.1f} at K = {numbers['orders'][-1]}",
                verdict(third >= 10),
            ),
            Claim(
                "Nested differentiation grows exponentially with K, Taylor mode does not",
                "O(exp K) and O(K^2)",
                ", ".join(f"{method} {x:.2f} times an order" for method, x in growth.items()),
                verdict(growth["nested jvp"] > 1.5 * growth["Taylor mode"]),
            ),
        ]


def _milliseconds(method: str, order: int) -> float:
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
    jax.block_until_ready(gradient(field, y))
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(gradient(field, y))
        times.append(time.perf_counter() - start)
    return 1e3 * sorted(times)[REPEATS // 2]


def _nested(field: Any, order: int) -> Callable[[Any, Any], Any]:
    import jax
    import jax.numpy as jnp

    derivative = lambda t, y: field(t, y, None)
    for _ in range(order - 1):
        derivative = lambda t, y, of=derivative: jax.jvp(
            of, (t, y), (jnp.ones_like(t), field(t, y, None))
        )[1]
    return derivative
