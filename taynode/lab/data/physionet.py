"""PhysioNet 2012: irregular measurements of patients in intensive care."""

import contextlib
import zipfile
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from ..files import drafted
from . import store
from .errors import DataError
from .physionet_files import digest, patient_files
from .physionet_parse import NUM_SLOTS, PARAMETERS, parse_outcomes, parse_patients, Records
from .registry import archives, data_set
from .series import Series, SeriesSplit


# Must be raised whenever the result of parsing changes.
VERSION = 1
SETS = "a", "b", "c"


def load_physionet(
    *, sets: tuple[str, ...] = ("a", "b"), seed: int = 0, num_patients: int | None = None
) -> SeriesSplit:
    """The first 48 hours of patients in intensive care, by the hour. The label of a death is 1.

    There are 37 channels. Each value is the mean of the measurements nearest to an hour. A channel
    is scaled by its extremes in the training part, x -> (x - low) / (high - low), or shifted to
    zero if it is constant there. A channel without measurements in the training part cannot be
    scaled, so its values in the test part are dropped. A few patients have no measurements at all.

    **Arguments:**

    - `sets`: the sets of the challenge, of 4,000 patients each. The patients of a set have to be in
        `TAYNODE_DATA` or in the cache, as an archive `set-a.tar.gz` (`.tgz`, `.tar.xz`, `.tar`,
        `.zip`) or as a folder `set-a`. Labels come from `Outcomes-a.txt`; without it they are -1.
    - `seed`: the seed of the split into 80 % training and 20 % test patients.
    - `num_patients`: the number of patients, chosen at random; all by default.

    The parsed files are kept in the cache, so that only the first call is slow.
    """
    # Sorted, so that the split does not depend on the order of the argument.
    chosen = sorted(set(sets))
    if not chosen or not set(chosen) <= set(SETS):
        got = ", ".join(map(repr, chosen)) or "none"
        raise DataError(f"The sets of PhysioNet 2012 are {', '.join(SETS)}, got {got}.")
    records = [load_records(name) for name in chosen]
    labels = [load_labels(x, name) for x, name in zip(records, chosen, strict=True)]
    ids, values, mask = (
        np.concatenate([getattr(x, name) for x in records]) for name in ["ids", "values", "mask"]
    )
    if len(np.unique(ids)) != len(ids):
        raise DataError(f"Sets {', '.join(chosen)} have patients in common. Get them again.")
    train, test = split_patients(len(ids), seed=seed, num_patients=num_patients)
    return _scale(values, mask, np.concatenate(labels), train, test)


def load_records(name: str) -> Records:
    """All patients of one set, from the cache of parsed files if possible."""
    path = store.require_by_hand(data_set("physionet2012"), archives(f"set-{name}"))
    cache = store.cache_folder()
    if cache is None:
        return parse_patients(patient_files(path))
    parsed = cache / "physionet2012" / f"parsed-{VERSION}-{digest(path)}.npz"
    records = _read(parsed)
    if records is None:
        records = parse_patients(patient_files(path))
        _write(parsed, records)
    return records


def load_labels(records: Records, name: str) -> Int32[np.ndarray, "num"]:
    """1 for patients who died in hospital, 0 for those who survived, -1 if unknown."""
    path = store.find(data_set("physionet2012"), (f"Outcomes-{name}.txt",))
    if path is None:
        return np.full(len(records.ids), -1, np.int32)
    outcomes, numbers = parse_outcomes(path), records.ids.tolist()
    # A tar that was cut between two files looks complete, as does a table cut between two lines.
    for what, there, expected, source in (
        (f"set-{name}", numbers, outcomes, path),
        (path, outcomes, numbers, f"set-{name}"),
    ):
        if lost := sorted(set(expected) - set(there)):
            got = f"{len(lost)} of the {len(expected)} patients in {source}, such as {lost[0]}"
            raise DataError(f"{what} is incomplete: it lacks {got}. Get it again.")
    return np.array([outcomes[number] for number in numbers], np.int32)


def split_patients(
    num: int, *, seed: int, num_patients: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the training patients and of the test patients."""
    num_used = num if num_patients is None else num_patients
    if not 2 <= num_used <= num:
        raise DataError(f"`num_patients` must be from 2 to {num}, got {num_used}.")
    # Unlike `default_rng`, this stream is the same in all versions of numpy.
    order = np.random.RandomState(seed).permutation(num)[:num_used]
    num_train = num_used * 4 // 5
    return order[:num_train], order[num_train:]


def _scale(
    values: np.ndarray, mask: np.ndarray, labels: np.ndarray, train: np.ndarray, test: np.ndarray
) -> SeriesSplit:
    seen = mask[train]
    low = np.min(values[train], axis=(0, 1), where=seen, initial=np.inf)
    high = np.max(values[train], axis=(0, 1), where=seen, initial=-np.inf)
    is_known = low <= high
    low, high = np.where(is_known, low, 0), np.where(is_known, high, 0)
    width = np.where(high > low, high - low, 1)
    times = np.linspace(0, 1, NUM_SLOTS, dtype=np.float32)

    def part(chosen: np.ndarray) -> Series:
        observed = mask[chosen] & is_known
        scaled = np.where(observed, (values[chosen] - low) / width, 0)
        return Series(times, scaled.astype(np.float32), observed, labels[chosen])

    low, high = low.astype(np.float32), high.astype(np.float32)
    return SeriesSplit(part(train), part(test), PARAMETERS, low, high)


def _read(path: Path) -> Records | None:
    """The patients in a file of the cache, or `None` if it is missing or damaged."""
    try:
        # Opened here, because numpy does not close a file that it cannot parse.
        with path.open("rb") as source, np.load(source, allow_pickle=False) as file:
            ids, packed, observed = file["ids"], file["mask"], file["observed"]
            shape = len(ids), NUM_SLOTS, len(PARAMETERS)
            mask = np.unpackbits(packed, count=int(np.prod(shape))).astype(bool).reshape(shape)
            values = np.zeros(shape, np.float32)
            values[mask] = observed
            return Records(ids, file["static"], values, mask, file["num_rows"])
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None


def _write(path: Path, records: Records) -> None:
    """Write patients to the cache. Most entries are not observed, and are not stored."""
    # Without a cache, everything works, but slower.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with drafted(path) as draft:
            np.savez(
                draft,
                ids=records.ids,
                static=records.static,
                num_rows=records.num_rows,
                mask=np.packbits(records.mask),
                observed=records.values[records.mask],
            )
