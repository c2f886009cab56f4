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


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's: the correlation of ranks; ties share theirs. Not a number if one is constant."""
    import numpy as np

    ranks = [_ranks(np.asarray(x, float)) for x in (a, b)]
    if len(a) < 2 or any(np.ptp(x) == 0 for x in ranks):
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])


def _ranks(x: Any) -> Any:
    import numpy as np

    ordered = np.sort(x)
    lower, upper = (np.searchsorted(ordered, x, side=side) for side in ("left", "right"))
    return (lower + upper - 1) / 2
