"""`samples.npz`: arrays on single samples of a finished run.

- `train_nfe`, `test_nfe`: evaluations per sample.
- `path_times` (T,), `path_states` (N, T, D'): some paths at dense times. States of more than 2
  numbers are coordinates along the principal directions of all their points, the largest first.
- `path_mean` (D,), `path_basis` (D', D): the state is `path_mean + path_states @ path_basis`, up to
  the directions that are left out. So the paths of several runs can be drawn on common axes.
- `path_variance` (): the variance of all states, summed over their components.
- `path_derivative` (K, N, T): root mean square over the state of the first to the K-th derivative.
- `step_times` (N, S): the ends of the solver's accepted steps, filled up with NaN.
- `path_labels` (N,): the classes, if there are any.

For flows in the plane or of images:

- `plane_data`, `plane_samples` (N, 2), or `image_data`, `image_samples` (N, H, W, 1): test samples,
  and samples of the model.
- `density_axis` (M,), `density` (M, M): the density in the plane on a grid.

For models of time series:

- `series_times` (T,), `series_values` (N, T, C), `series_names` (C,): some series and channels, NaN
  where nothing was observed.
- `series_seen` (N, T, C): the observations that the model gets, until `series_end`.
- `series_dense` (M,), `series_mean`, `series_low`, `series_high` (N, M, C): the predictions, and
  quantiles of them.
- `series_unit`: the unit of time.
"""

import os
import zipfile
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ..files import drafted


SampleArrays: TypeAlias = dict[str, np.ndarray]
SAMPLES = "samples.npz"
DEFAULT_ORDER = 3


def sheet(images: np.ndarray) -> np.ndarray:
    """Images (N, H, W, 1) as one image, with as many rows as columns."""
    side = int(len(images) ** 0.5)
    rows = [np.concatenate(list(images[i * side : (i + 1) * side, ..., 0]), 1) for i in range(side)]
    return np.concatenate(rows)


def write_samples(directory: Path, arrays: SampleArrays) -> Path:
    """Write the file of a run, at once or not at all."""
    file = Path(directory) / SAMPLES
    with drafted(file) as draft, open(draft, "wb") as stream:
        np.savez(stream, **arrays)  # pyright: ignore[reportArgumentType]
        stream.flush()
        os.fsync(stream.fileno())
    return file


def read_samples(directory: Path) -> SampleArrays:
    """Read the file of a run; raises `OSError` or `ValueError`."""
    try:
        # numpy does not close a file that it cannot read.
        with open(Path(directory) / SAMPLES, "rb") as stream:
            file = np.load(stream, allow_pickle=False)
            return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, EOFError, KeyError) as error:
        raise ValueError(str(error)) from error
