"""Taylor mode against nested differentiation: the cost of the K-th derivative."""

import math
import statistics
import time
from collections.abc import Sequence

import numpy as np

from ..sweep.results import Result
from .chart import Chart, Line, Panel
from .statistics import quotients, spread
from .study import AbstractStudy, Claim, judged, Numbers
from .verdicts import FAILS, HOLDS, ratio, UNDECIDED


ORDERS = (1, 2, 3, 4, 5, 6)
METHODS = ("Taylor mode", "nested jvp")
ROUNDS = 9


class TaylorCost(AbstractStudy):
    """The gradient of R_K at a point, for the paper's classifier of MNIST."""

    name = "taylor-cost"
    title = "The cost of R_K's gradient, by order"
    num_seeds = 0

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """By method and order: milliseconds, and operations before and after XLA's compiler.

        Times are medians over rounds. Each round times all methods and orders once.
        """
        from .taylor_gradient import gradient_of

        del results
        orders = ORDERS[:3] if scale == "smoke" else ORDERS
        gradients = {
            (method, k): gradient_of(k, nested=method == METHODS[1])
            for method in METHODS
            for k in orders
        }
        times: dict[tuple[str, int], list[float]] = {key: [] for key in gradients}
        for _ in range(ROUNDS):
            for key, gradient in gradients.items():
                start = time.perf_counter()
                gradient.call()
                times[key].append(1e3 * (time.perf_counter() - start))
        return {
            "orders": list(orders),
            **{
                method: {
                    "milliseconds": [statistics.median(times[method, k]) for k in orders],
                    "operations": [gradients[method, k].num_compiled for k in orders],
                    "operations as written": [gradients[method, k].num_written for k in orders],
                }
                for method in METHODS
            },
            # A ratio for each round, for the spread.
            "ratios": [quotients(times[METHODS[1], k], times[METHODS[0], k]) for k in orders],
        }

    def chart(self, numbers: Numbers) -> Chart:
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

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Taylor mode grows polynomially, and nested differentiation exponentially."""
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
    """The verdict; undecided for few orders."""
    if len(orders) <= 3:
        return UNDECIDED
    holds = _is_exponential(orders, nested) and not _is_exponential(orders, taylor)
    return HOLDS if holds else FAILS


def _is_exponential(orders: Sequence[int], costs: Sequence[float]) -> bool:
    """Whether an exponential fits better than a power.

    The first order does not count: it takes no derivative of the dynamics.
    """
    errors = fit_errors(orders[1:], costs[1:])
    return errors["exponential"] < errors["power"]


def _growth(orders: Sequence[int], costs: Sequence[float]) -> str:
    factor = (costs[-1] / costs[1]) ** (1 / (orders[-1] - orders[1]))
    power = math.log(costs[-1] / costs[1]) / math.log(orders[-1] / orders[1])
    return f"{factor:.3g}^K" if _is_exponential(orders, costs) else f"K^{power:.3g}"


def fit_errors(orders: Sequence[int], times: Sequence[float]) -> dict[str, float]:
    """The relative errors of the best exponential and of the best power of the order.

    They are root mean squares of the differences of logarithms.
    """
    y, out = np.log(times), {}
    for name, x in {"exponential": np.asarray(orders, float), "power": np.log(orders)}.items():
        rest = y - np.polyval(np.polyfit(x, y, 1), x)
        out[name] = float(np.sqrt(np.mean(rest**2)))
    return out
