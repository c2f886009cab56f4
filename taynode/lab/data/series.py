"""What a loader of irregularly observed time series returns."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int32


@dataclass(frozen=True, eq=False)
class Series:
    """Time series on shared time stamps, of which each has observed only some entries.

    - `times`: increasing, in [0, 1].
    - `values`: zero where nothing was observed.
    - `mask`: whether an entry was observed.
    - `labels`: one for every series, -1 where it is unknown.
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
    """What to train on, and what to test on; no series is in both.

    - `names`: of the channels.
    - `low`, `high`: what became 0 and 1, in the units of the source. They are the extremes of the
        training part, so values of the test part may lie outside [0, 1].
    """

    train: Series
    test: Series
    names: tuple[str, ...]
    low: Float32[np.ndarray, "channels"]
    high: Float32[np.ndarray, "channels"]
