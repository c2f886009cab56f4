"""Correlation of ranks. This module does not import JAX."""

import math
from collections.abc import Sequence

import numpy as np


def rank_correlation(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """Spearman's correlation of ranks; ties share their rank. NaN if one of the two is constant."""
    ranks = np.stack([_ranks(np.asarray(x, float)) for x in (a, b)])
    if len(a) < 2 or any(np.ptp(ranks, axis=1) == 0):
        return math.nan
    return float(np.corrcoef(ranks)[0, 1])


def _ranks(x: np.ndarray) -> np.ndarray:
    ordered = np.sort(x)
    lower, upper = (np.searchsorted(ordered, x, side=side) for side in ("left", "right"))
    return (lower + upper - 1) / 2
