"""`samples.npz`: what a finished run tells about single samples, as plain arrays.

- `train_nfe`, `test_nfe`: evaluations per sample.
- `path_times` (T,), `path_states` (N, T, D'): some paths at dense times. States of up to 2 numbers
  are as they are, larger ones are coordinates along the principal directions of all their points,
  the most important first.
- `path_mean` (D,), `path_basis` (D', D): the state is `path_mean + path_states @ path_basis`, up to
  the directions that are left out; so the paths of several runs can be seen from one side.
- `path_variance` (): of all states, summed over their components, to tell what is left out.
- `path_derivative` (K, N, T): root mean square over the state of the first to the K-th derivative.
- `step_times` (N, S): where the solver's accepted steps end, filled up with NaN.
- `path_labels` (N,): the classes, where there are any.

Of flows in the plane, or of images, also

- `plane_data`, `plane_samples` (N, 2), or `image_data`, `image_samples` (N, H, W, 1): test samples,
  and new ones.
- `density_axis` (M,), `density` (M, M): the density in the plane on a grid.

Of models of time series

- `series_times` (T,), `series_values` (N, T, C), `series_names` (C,): some series and channels, NaN
  where nothing was observed.
- `series_seen` (N, T, C): what of that the model is shown; `series_end`: until when.
- `series_dense` (M,), `series_mean`, `series_low`, `series_high` (N, M, C): what the model says of
  them, and between which quantiles.
- `series_unit`: of time.
"""

import os
import zipfile
from pathlib import Path

import numpy as np

from ..files import drafted


SAMPLES = "samples.npz"
DEFAULT_ORDER = 3


def sheet(images: np.ndarray) -> np.ndarray:
    """Images (N, H, W, 1) as one, in as many rows as columns."""
    side = int(len(images) ** 0.5)
    rows = [np.concatenate(list(images[i * side : (i + 1) * side, ..., 0]), 1) for i in range(side)]
    return np.concatenate(rows)


def write_samples(directory: Path, arrays: dict[str, np.ndarray]) -> Path:
    """Write the file of a run, at once or not at all."""
    file = Path(directory) / SAMPLES
    with drafted(file) as draft, open(draft, "wb") as stream:
        np.savez(stream, **arrays)  # pyright: ignore[reportArgumentType]
        stream.flush()
        os.fsync(stream.fileno())
    return file


def read_samples(directory: Path) -> dict[str, np.ndarray]:
    """Read the file of a run; raises `OSError` or `ValueError`."""
    try:
        # Opened here, since numpy leaves a file open that it cannot read.
        with open(Path(directory) / SAMPLES, "rb") as stream:
            file = np.load(stream, allow_pickle=False)
            return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, EOFError, KeyError) as error:
        raise ValueError(str(error)) from error
