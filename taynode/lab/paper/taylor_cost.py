"""Taylor mode against nested differentiation: what the K-th derivative costs."""

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .chart import Chart, Line, Panel
from .statistics import spread
from .study import AbstractStudy, Claim, judged
from .verdicts import FAILS, HOLDS, ratio, UNDECIDED


ORDERS = (1, 2, 3, 4, 5, 6)
METHODS = ("Taylor mode", "nested jvp")
ROUNDS = 9


class TaylorCost(AbstractStudy):
    """The gradient of R_K at a point, for the paper's classifier of MNIST."""

    name: ClassVar[str] = "taylor-cost"
    title: ClassVar[str] = "The cost of R_K's gradient, by order"
    num_seeds: ClassVar[int] = 0

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """By method and order: milliseconds, and operations before and after XLA's compiler.

        Times are medians of rounds in which all take their turns.
        """
        del results
        orders = ORDERS[:3] if scale == "smoke" else ORDERS
        costs = {(method, order): _cost_of(method, order) for method in METHODS for order in orders}
        times: dict[tuple[str, int], list[float]] = {key: [] for key in costs}
        for _ in range(ROUNDS):
            for key, cost in costs.items():
                start = time.perf_counter()
                cost.call()
                times[key].append(1e3 * (time.perf_counter() - start))
        return {
            "orders": list(orders),
            **{
                method: {
                    "milliseconds": [statistics.median(times[method, k]) for k in orders],
                    "operations": [costs[method, k].as_compiled for k in orders],
                    "operations as written": [costs[method, k].as_written for k in orders],
                }
                for method in METHODS
            },
            # Of each round, for the spread.
            "ratios": [
                [a / b for a, b in zip(*(times[x, order] for x in METHODS[::-1]), strict=True)]
                for order in orders
            ],
        }

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """Times and operations over orders."""
        orders = numbers["orders"]
        of_time, of_work = [], []
        for i, method in enumerate(METHODS):
            cost = numbers[method]
            of_time.append(Line(orders, cost["milliseconds"], method, i + 1))
            of_work += [
                Line(orders, [x / 1e9 for x in cost[name]], f"{method}{words}", color, width=width)
                for name, words, color, width in (
                    ("operations", ", compiled", i + 1, 1.5),
                    ("operations as written", ", as written", i + 3, 0.8),
                )
            ]
        return Chart(
            [
                Panel(of_time, x="K", y="gradient of R_K at a point, ms", y_log=True),
                Panel(of_work, x="K", y="billion operations", y_log=True),
            ]
        )

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """Polynomial against exponential growth."""
        ratios, orders = numbers["ratios"], numbers["orders"]
        third = ratios[orders.index(3)]
        taylor, nested = (numbers[method] for method in METHODS)
        saved = {
            name: nested[name][-1] / taylor[name][-1]
            for name in ("operations", "operations as written")
        }
        return [
            judged(
                "At K = 3, Taylor mode is an order of magnitude faster than nested differentiation",
                "an order of magnitude",
                f"{spread(third)} times as fast, {spread(ratios[-1])} at K = {orders[-1]}",
                ratio("nested over Taylor mode, by round", third, at_least=10.0),
                rule="at least 10 times; rounds of measurements take the place of seeds",
            ),
            Claim(
                "Nested differentiation grows exponentially with K, Taylor mode as a power of it",
                "O(exp K) and O(K^2)",
                f"{_growth(orders, nested['operations as written'])} and "
                f"{_growth(orders, taylor['operations as written'])} as written; XLA finds some of "
                f"what nested derivatives repeat: at K = {orders[-1]} they take "
                f"{saved['operations as written']:.2g} times the operations as written, "
                f"{saved['operations']:.2g} times as compiled",
                _grow_as_claimed(orders, *(x["operations as written"] for x in (nested, taylor))),
                rule="an exponential fits the first better than a power, and the second worse; no "
                "chance in it",
            ),
        ]


def _grow_as_claimed(
    orders: Sequence[int], nested: Sequence[float], taylor: Sequence[float]
) -> str:
    """The verdict; few orders decide nothing."""
    if len(orders) <= 3:
        return UNDECIDED
    holds = _is_exponential(orders, nested) and not _is_exponential(orders, taylor)
    return HOLDS if holds else FAILS


def _is_exponential(orders: Sequence[int], costs: Sequence[float]) -> bool:
    """Rather than a power; the first order is without any derivative of the dynamics."""
    errors = fit_errors(orders[1:], costs[1:])
    return errors["exponential"] < errors["power"]


def _growth(orders: Sequence[int], costs: Sequence[float]) -> str:
    factor = (costs[-1] / costs[1]) ** (1 / (orders[-1] - orders[1]))
    power = math.log(costs[-1] / costs[1]) / math.log(orders[-1] / orders[1])
    return f"{factor:.3g}^K" if _is_exponential(orders, costs) else f"K^{power:.3g}"


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


@dataclasses.dataclass
class Cost:
    """A compiled gradient, and the floating-point operations in it before and after compilation."""

    call: Callable[[], Any]
    as_written: float
    as_compiled: float


def _cost_of(method: str, order: int) -> Cost:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import jax.random as jr

    from ...models import NeuralODEClassifier
    from ...taylor import solution_derivatives

    key = jr.key(0)
    field = NeuralODEClassifier(784, 100, 10, key=key).vector_field
    y = jr.normal(key, (100, 784))
    arrays, rest = eqx.partition(field, eqx.is_inexact_array)

    def penalty(arrays: Any, y: Any) -> Any:
        field = eqx.combine(arrays, rest)
        if method == "Taylor mode":
            derivative = solution_derivatives(field, jnp.array(0.3), y, order=order)[-1]
        else:
            derivative = _nested(field, order)(jnp.array(0.3), y)
        return jnp.mean(derivative**2)

    lowered = jax.jit(jax.grad(penalty)).lower(arrays, y)
    compiled = lowered.compile()
    call = lambda: jax.block_until_ready(compiled(arrays, y))
    call()
    return Cost(call, *(float(x.cost_analysis()["flops"]) for x in (lowered, compiled)))


def _nested(field: Any, order: int) -> Callable[[Any, Any], Any]:
    import jax
    import jax.numpy as jnp

    derivative = lambda t, y: field(t, y, None)
    for _ in range(order - 1):
        derivative = lambda t, y, of=derivative: jax.jvp(
            of, (t, y), (jnp.ones_like(t), field(t, y, None))
        )[1]
    return derivative
