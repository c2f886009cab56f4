"""MINIBOONE: events of a neutrino detector, for density estimation."""

import zipfile
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from . import store
from .errors import DataError


NUM_FEATURES = 43
NUM_EVENTS = 36_488
# The numbers of rows in the partial file.
PARTIAL = {"train": 2_881, "val": 3_284, "test": 3_648}

NUM_RAW_FEATURES = 50
# Counted from 1. The benchmark drops features whose smallest value occurs more than five times.
DROPPED = 6, 14, 23, 27, 35, 45, 46

# The name data.npy is common, so the file may be a different one.
_ADVICE = "Put the published file there."


@dataclass(frozen=True, eq=False)
class MinibooneSplit:
    """Signal events, standardized by the mean and deviation of the rows outside `test`.

    - `is_partial`: whether most of the training rows are missing. Results are then not comparable
        with published ones.
    - `label`: the name of the data in results, which includes that remark.
    """

    train: Float32[np.ndarray, "num_train 43"]
    valid: Float32[np.ndarray, "num_valid 43"]
    test: Float32[np.ndarray, "num_test 43"]
    is_partial: bool
    label: str


def load_miniboone() -> MinibooneSplit:
    """MINIBOONE with the split of the density-estimation benchmark: 29,556 / 3,284 / 3,648 rows.

    This looks in `TAYNODE_DATA` and in the cache for one of these files, in this order:

    - `data.npy`, the form of the benchmark;
    - `MiniBooNE_PID.txt`, the form that UCI publishes, https://doi.org/10.24432/C5QC87;
    - `miniboone_partial.npz`, with only 9.7 % of the training rows.
    """
    path = store.locate_by_hand("miniboone")[0]
    if path.suffix == ".npz":
        return read_partial(path)
    events = read_npy(path) if path.suffix == ".npy" else read_raw(path)
    # Results on a part of the data must not be labeled as MINIBOONE.
    if len(events) != NUM_EVENTS:
        got = f"expected {NUM_EVENTS} events, got {len(events)}"
        raise DataError(f"{path} is not the published file: {got}. {_ADVICE}")
    return split_events(events, path)


def read_npy(path: Path) -> np.ndarray:
    """The events in the file of the benchmark."""
    events = _load(path)
    if not isinstance(events, np.ndarray):
        raise DataError(f"{path} is corrupt: expected one array, got several. {_ADVICE}")
    return _checked(events, path)


def read_raw(path: Path) -> np.ndarray:
    """The signal events in the file of UCI, without outliers and without seven features."""
    try:
        with path.open(encoding="ascii") as file:
            head = file.readline().split()
            if len(head) != 2 or not all(x.isdigit() for x in head):
                got = f"expected two counts in its first line, got {' '.join(head)[:50]!r}"
                raise DataError(f"{path} is no MiniBooNE_PID.txt: {got}. {_ADVICE}")
            num_signal, num_rest = map(int, head)
            lines = list(islice(file, num_signal))
            num = len(lines) + sum(1 for line in file if line.strip())
        if num != num_signal + num_rest or num_signal == 0:
            got = f"its first line says {num_signal} + {num_rest} rows, got {num}"
            raise DataError(f"{path} is truncated or corrupt: {got}. {_ADVICE}")
        rows = np.loadtxt(lines, ndmin=2)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    except ValueError as error:
        raise DataError(f"{path} is corrupt: {error}. {_ADVICE}") from error
    if rows.shape[1] != NUM_RAW_FEATURES:
        got = f"expected rows of {NUM_RAW_FEATURES} numbers, got {rows.shape[1]}"
        raise DataError(f"{path} is corrupt: {got}. {_ADVICE}")
    # Outliers: in the published file, eleven rows of -999.
    rows = rows[rows[:, 0] >= -100]
    return _checked(np.delete(rows, np.array(DROPPED) - 1, axis=1), path)


def read_partial(path: Path) -> MinibooneSplit:
    """The contents of the partial file, which are already standardized."""
    arrays = _load(path)
    if isinstance(arrays, np.ndarray) or not set(PARTIAL) <= set(arrays):
        got = "one array" if isinstance(arrays, np.ndarray) else ", ".join(sorted(arrays))
        expected = ", ".join(PARTIAL)
        raise DataError(f"{path} is corrupt: expected {expected}, got {got}. {_ADVICE}")
    for name, num in PARTIAL.items():
        if len(_checked(arrays[name], path)) != num:
            got = f"expected {num} rows in {name}, got {len(arrays[name])}"
            raise DataError(f"{path} is not the known file: {got}. {_ADVICE}")
    train, valid, test = (arrays[name].astype(np.float32) for name in PARTIAL)
    label = "MINIBOONE, 9.7 % of the training rows, full benchmark test set"
    return MinibooneSplit(train, valid, test, is_partial=True, label=label)


def split_events(events: np.ndarray, path: Path) -> MinibooneSplit:
    """Split and standardize: the last tenth is for tests, the last tenth of the rest validates."""
    num_test = len(events) // 10
    num_valid = (len(events) - num_test) // 10
    num_train = len(events) - num_test - num_valid
    known = events[: num_train + num_valid].astype(np.float64)
    mean, deviation = known.mean(0), known.std(0)
    if np.any(deviation == 0):
        which = np.flatnonzero(deviation == 0).tolist()
        raise DataError(f"{path} is corrupt: features {which} never change. {_ADVICE}")
    scaled = ((events - mean) / deviation).astype(np.float32)
    train, valid, test = np.split(scaled, [num_train, num_train + num_valid])
    return MinibooneSplit(train, valid, test, is_partial=False, label="MINIBOONE")


def _load(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    try:
        # Opened here, because numpy does not close a file that it cannot parse.
        with path.open("rb") as file:
            content = np.load(file, allow_pickle=False)
            return content if isinstance(content, np.ndarray) else dict(content)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is truncated or corrupt: {error}. {_ADVICE}") from error


def _checked(events: np.ndarray, path: Path) -> np.ndarray:
    is_float = np.issubdtype(events.dtype, np.floating)
    if not is_float or events.ndim != 2 or events.shape[1] != NUM_FEATURES:
        got = f"expected rows of {NUM_FEATURES} floats, got {events.dtype} of shape {events.shape}"
        raise DataError(f"{path} is corrupt: {got}. {_ADVICE}")
    num = np.sum(~np.isfinite(events))
    if num:
        raise DataError(f"{path} is corrupt: {num} values are not finite. {_ADVICE}")
    return events
