"""Irregularly observed time series."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int32


@dataclass(frozen=True, eq=False)
class Series:
    """Time series with shared times, of which only some entries are observed.

    - `times`: increasing times in [0, 1].
    - `values`: the values; zero where nothing was observed.
    - `mask`: whether an entry was observed.
    - `labels`: a label of every series; -1 if unknown.
    """

    times: Float32[np.ndarray, "num_times"]
    values: Float32[np.ndarray, "num times channels"]
    mask: Bool[np.ndarray, "num_masks times_of_mask channels_of_mask"]
    labels: Int32[np.ndarray, "num_labels"]

    def __post_init__(self):
        shape = len(self.labels), len(self.times), self.values.shape[-1]
        if self.values.shape != shape or self.mask.shape != shape:
            raise ValueError(
                f"Got {len(self.labels)} labels and {len(self.times)} times, but values of shape "
                f"{self.values.shape} and a mask of shape {self.mask.shape}."
            )

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class SeriesSplit:
    """Training and test series. No series is in both parts.

    - `names`: the names of the channels.
    - `low`, `high`: the values that became 0 and 1, in the units of the source. They are the
        extremes of the training part, so values of the test part may lie outside [0, 1].
    """

    train: Series
    test: Series
    names: tuple[str, ...]
    low: Float32[np.ndarray, "channels"]
    high: Float32[np.ndarray, "channels"]
