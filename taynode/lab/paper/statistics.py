"""Means over seeds, their spreads and intervals."""

import functools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any


# The level of the intervals by which claims are judged.
CONFIDENCE = 0.9


def mean(values: Iterable[float]) -> float:
    """The mean; NaN if there are no numbers, or if one of them is not finite."""
    values = list(values)
    is_known = values and all(map(math.isfinite, values))
    return statistics.fmean(values) if is_known else math.nan


def deviation(values: Iterable[float]) -> float:
    """The standard deviation; 0 for a single number."""
    values = list(values)
    if not math.isfinite(mean(values)):
        return math.nan
    return statistics.stdev(values) if len(values) > 1 else 0.0


def mean_interval(values: Iterable[float]) -> tuple[float, float] | None:
    """The two-sided Student interval of the mean of a sample, at the level `CONFIDENCE`.

    `None` for fewer than two values, or if one of them is not finite.
    """
    values = list(values)
    middle = mean(values)
    if len(values) < 2 or not math.isfinite(middle):
        return None
    half = student_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return middle - half, middle + half


@functools.cache
def student_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """The t for which |T| < t has this probability, for Student's T with `freedom` degrees.

    By bisection: the probability has a closed form (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    # The unknown is an angle: t = sqrt(freedom) tan(angle).
    low, high = 0.0, math.pi / 2
    while low < (angle := (low + high) / 2) < high:
        is_below = _student_probability(angle, freedom) < confidence
        low, high = (angle, high) if is_below else (low, angle)
    return math.sqrt(freedom) * math.tan(angle)


def _student_probability(angle: float, freedom: int) -> float:
    odd = freedom % 2
    term = math.sin(angle) * (math.cos(angle) if odd else 1.0)
    total = 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (k - 1) / k
    return 2 / math.pi * (angle + total) if odd else total


def quotients(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """`above / below`, seed by seed."""
    return [a / b for a, b in zip(above, below, strict=True)]


def differences(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """`above - below`, seed by seed."""
    return [a - b for a, b in zip(above, below, strict=True)]


def percent_more(ratios: Iterable[float]) -> list[float]:
    """By how many percent ratios are above 1."""
    return [100 * (x - 1) for x in ratios]


def percent_fewer(ratios: Iterable[float]) -> list[float]:
    """By how many percent ratios are below 1."""
    return [100 * (1 - x) for x in ratios]


def spread(values: Sequence[float]) -> str:
    """The mean and, for several numbers, the standard deviation with as many decimals."""
    middle, around = mean(values), deviation(values)
    if len(values) < 2 or not around > 0:
        return f"{middle:.3g}" if abs(middle) < 1000 else f"{middle:.0f}"
    decimals = max(0, 1 - math.floor(math.log10(around)))
    return f"{middle:.{decimals}f} ± {around:.{decimals}f}"


def in_range(values: Sequence[float]) -> str:
    """The smallest and the largest number, for numbers of different magnitude."""
    low, high = (f"{x:.2g}" for x in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def rounded(value: Any) -> Any:
    """A value of JSON with six digits of each number, which is more than figures show."""
    if isinstance(value, dict):
        return {name: rounded(x) for name, x in value.items()}
    if isinstance(value, list):
        return [rounded(x) for x in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
