"""Labeled data."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int32


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and their labels, in the same order."""

    inputs: Float32[np.ndarray, "num *shape"]
    labels: Int32[np.ndarray, "num_labels"]

    def __post_init__(self):
        if len(self.inputs) != len(self.labels):
            raise ValueError(f"Got {len(self.inputs)} inputs, but {len(self.labels)} labels.")

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test examples. No example is in both parts."""

    train: Examples
    test: Examples

    def __post_init__(self):
        train, test = self.train.inputs.shape[1:], self.test.inputs.shape[1:]
        if train != test:
            raise ValueError(f"Inputs for training have shape {train}, those for tests {test}.")
