"""Parsing the files of PhysioNet 2012: one per patient, and one of outcomes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from jaxtyping import Bool, Float32, Int32, Int64

from .errors import DataError


# In the order of the code of latent ODEs (Rubanova et al., 2019).
STATIC = "Age", "Gender", "Height", "ICUType"
PARAMETERS = (
    *("Weight", "Albumin", "ALP", "ALT", "AST", "Bilirubin", "BUN", "Cholesterol", "Creatinine"),
    *("DiasABP", "FiO2", "GCS", "Glucose", "HCO3", "HCT", "HR", "K", "Lactate", "Mg", "MAP"),
    *("MechVent", "Na", "NIDiasABP", "NIMAP", "NISysABP", "PaCO2", "PaO2", "pH", "Platelets"),
    *("RespRate", "SaO2", "SysABP", "Temp", "TroponinI", "TroponinT", "Urine", "WBC"),
)
NUM_SLOTS = 49

_HEADER = ["Time", "Parameter", "Value"]
# Python rounds half to even, as the original code does: 00:30 is hour 0, and 01:30 is hour 2.
_SLOTS = {f"{m // 60:02}:{m % 60:02}": round(m / 60) for m in range(48 * 60 + 1)}
_COLUMNS = {name: i for i, name in enumerate((*PARAMETERS, *STATIC, "RecordID"))}
# For these, -1 means that there is no value.
_CODED = np.array([name in ("Height", "Weight", "Gender") for name in _COLUMNS])
_NUM_CELLS = NUM_SLOTS * len(PARAMETERS)


@dataclass(frozen=True, eq=False)
class Records:
    """Patients in the order of their number.

    - `values`: means over the hour around each of the times 0 to 48, in the units of the source;
        zero where nothing was observed.
    - `mask`: whether an entry was observed.
    - `static`: the constant parameters in `STATIC`; NaN if unknown.
    - `num_rows`: the number of lines in the file of each patient, without header and RecordID.
    """

    ids: Int64[np.ndarray, "num"]
    static: Float32[np.ndarray, "num 4"]
    values: Float32[np.ndarray, "num 49 37"]
    mask: Bool[np.ndarray, "num 49 37"]
    num_rows: Int32[np.ndarray, "num"]


def parse_patients(files: Iterable[tuple[str, bytes]]) -> Records:
    """The patients of files, which are pairs of name and content in any order."""
    patients = {}
    for name, content in files:
        number, *rest = parse_patient(content, name)
        if number in patients:
            raise DataError(f"{name}: patient {number} occurs twice. Delete one of the files.")
        patients[number] = rest
    ids = np.array(sorted(patients), np.int64)
    means, counts, num_rows = zip(*(patients[number] for number in ids.tolist()), strict=True)
    means, seen = np.stack(means), np.stack(counts) > 0
    shape = len(ids), NUM_SLOTS, len(PARAMETERS)
    return Records(
        ids=ids,
        static=np.where(seen, means, np.float32(np.nan))[:, _NUM_CELLS:],
        values=means[:, :_NUM_CELLS].reshape(shape),
        mask=seen[:, :_NUM_CELLS].reshape(shape),
        num_rows=np.array(num_rows, np.int32),
    )


def parse_patient(content: bytes, name: str) -> tuple[int, np.ndarray, np.ndarray, int]:
    """The number of a patient, means, whether each is observed, and the number of lines.

    The means are those of every parameter in every hour, then those of the static parameters.
    """
    # Latin-1 decodes any byte, so that `_problem` can quote a malformed line.
    text = content.decode("latin-1").replace("\r\n", "\n").rstrip("\n")
    # All lines at once, since there are millions. A line with more or fewer than three fields
    # shifts the following fields, so that a time is found in place of a name or a number.
    fields = text.replace("\n", ",").split(",")
    try:
        if fields[:3] != _HEADER or len(fields) != 3 * (text.count("\n") + 1):
            raise ValueError
        slots = np.array([_SLOTS[x] for x in fields[3::3]], np.int64)
        columns = np.array([_COLUMNS[x] for x in fields[4::3]], np.int64)
        numbers = np.array([float(x) for x in fields[5::3]], np.float64)
        if not np.all(np.isfinite(numbers)):
            raise ValueError
    except (KeyError, ValueError):
        raise DataError(f"{name} is malformed: {_problem(text)}.") from None

    varies = columns < len(PARAMETERS)
    offset = _NUM_CELLS - len(PARAMETERS)
    cells = np.where(varies, slots * len(PARAMETERS) + columns, offset + columns)
    known = ~(_CODED[columns] & (numbers == -1))
    # Sorted, so that rounding does not depend on the order of lines.
    order = np.lexsort((numbers[known], cells[known]))
    cells, numbers = cells[known][order], numbers[known][order]
    size = offset + len(_COLUMNS)
    counts = np.bincount(cells, minlength=size)
    means = np.bincount(cells, numbers, minlength=size) / np.maximum(counts, 1)
    if counts[-1] != 1 or f"{means[-1]:.0f}.txt" != PurePosixPath(name).name:
        got = f"{means[-1]:.0f}" if counts[-1] == 1 else f"{counts[-1]} of them"
        raise DataError(f"{name} is malformed: expected its own RecordID, got {got}.")
    return int(means[-1]), means[:-1].astype(np.float32), counts[:-1] > 0, len(varies) - 1


def parse_outcomes(path: Path) -> dict[int, int]:
    """Whether each patient in a file of outcomes died in hospital, by number."""
    try:
        lines = path.read_text("latin-1").splitlines()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    names = lines[0].split(",") if lines else []
    if not {"RecordID", "In-hospital_death"} <= set(names):
        got = f"expected RecordID and In-hospital_death in its first line, got {names}"
        raise DataError(f"{path} is malformed: {got}.")
    patient, death = names.index("RecordID"), names.index("In-hospital_death")
    outcomes = {}
    for i, line in enumerate(lines[1:], 2):
        fields = line.split(",")
        is_sound = len(fields) == len(names) and fields[patient].isdigit()
        if not is_sound or fields[death] not in ("0", "1"):
            raise DataError(f"{path} is malformed: line {i} is {line[:50]!r}.")
        number = int(fields[patient])
        if number in outcomes:
            raise DataError(f"{path} is malformed: line {i} repeats patient {number}.")
        outcomes[number] = int(fields[death])
    return outcomes


def _problem(text: str) -> str:
    """The problem of the first malformed line, in words."""
    lines = text.split("\n")
    if lines[0] != ",".join(_HEADER):
        return f"expected the header {','.join(_HEADER)}, got {lines[0][:50]!r}"
    for i, line in enumerate(lines[1:], 2):
        fields = line.split(",")
        got = f"in line {i}, {line[:50]!r}"
        if len(fields) != 3:
            return f"expected 3 fields, got {len(fields)} {got}"
        if fields[0] not in _SLOTS:
            return f"expected a time from 00:00 to 48:00, got {fields[0]!r} {got}"
        if fields[1] not in _COLUMNS:
            return f"expected the name of a parameter, got {fields[1]!r} {got}"
        try:
            is_finite = math.isfinite(float(fields[2]))
        except ValueError:
            is_finite = False
        if not is_finite:
            return f"expected a number, got {fields[2]!r} {got}"
    return "its lines do not have 3 fields each"
