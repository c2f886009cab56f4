"""Time, memory and exact counts of compiled functions."""

import dataclasses
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

from .counting import count_products


@dataclasses.dataclass
class Cost:
    """What one function costs."""

    compile_seconds: float
    temp_bytes: int
    flops: float
    num_products: int
    run: Callable[[], Any]
    run_seconds: float = float("nan")


def prepare(make: Callable[[], Callable[..., Any]], args: tuple, *, compilations: int = 1) -> Cost:
    """Compile a function, `compilations` times for a median, and count what it does.

    `make` builds it anew each time, so that no trace of an earlier one is found in a cache.
    """
    seconds, compiled = [], None
    for _ in range(compilations):
        start = time.perf_counter()
        compiled = jax.jit(make()).lower(*args).compile()
        seconds.append(time.perf_counter() - start)
    assert compiled is not None
    analysis = compiled.memory_analysis()
    return Cost(
        compile_seconds=statistics.median(seconds),
        temp_bytes=analysis.temp_size_in_bytes if analysis is not None else 0,
        flops=(compiled.cost_analysis() or {}).get("flops", float("nan")),
        num_products=count_products(make(), *args),
        run=lambda: jax.block_until_ready(compiled(*args)),
    )


def time_together(costs: Mapping[str, Cost], *, rounds: int = 15, seconds: float = 0.02) -> None:
    """Time several functions in turn, so that noise of the machine falls on all of them alike.

    The median over rounds; in each round a function runs for about `seconds`.
    """
    repeats, times = {}, {name: [] for name in costs}
    for name, cost in costs.items():
        cost.run()
        start = time.perf_counter()
        cost.run()
        repeats[name] = max(1, int(seconds / (time.perf_counter() - start)))
    for _ in range(rounds):
        for name, cost in costs.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                cost.run()
            times[name].append((time.perf_counter() - start) / repeats[name])
    for name, cost in costs.items():
        cost.run_seconds = statistics.median(times[name])


def machine() -> str:
    """What it was measured on, in a line."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            model = next(line.split(":")[1].strip() for line in file if "model name" in line)
    except (OSError, StopIteration):
        pass
    return f"{model}, Python {platform.python_version()}, jax {jax.__version__}"
