"""Means and spreads over seeds."""

import statistics
from collections.abc import Sequence
from typing import Any


def of_group(
    results: Sequence[dict[str, Any]], *, regularizer: str, weight: float | None = None
) -> list[dict[str, Any]]:
    """The results of an arm that came to an end, in the order of their seeds."""
    chosen = []
    for result in results:
        settings = result["config"]["regularizer"]
        same = settings["name"] == regularizer and weight in (None, settings["weight"])
        if same and result["state"] == "finished":
            chosen.append(result)
    return sorted(chosen, key=lambda result: result["config"]["seed"])


def spread(values: Sequence[float]) -> str:
    """The mean, and the standard deviation if there are several."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.3g}"
    return f"{mean:.3g} ± {statistics.stdev(values):.2g}"
