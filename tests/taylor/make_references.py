"""Compute the stored reference values: `python -m tests.taylor.make_references [NAME ...]`.

Without names, computes those of the cases that have none yet and drops those whose case is gone; a
name, or the beginning of one, is computed again. All of them take some twenty minutes.

With `--check` in front, computes all again, or those that are named, and stores nothing: it prints
those that differ from what is stored, and fails if there are any.

One flat array of numbers and an index by name keep the file small and free of pickles.
"""

import dataclasses
import functools
import importlib
import json
import multiprocessing
import pathlib
import pkgutil
import sys

import jax
import numpy as np

from . import cases
from .case import Case, reference_values


PATH = pathlib.Path(__file__).with_name("references.npz")


def all_cases() -> dict[str, Case]:
    """Every case of every module in `cases`, by name."""
    found: dict[str, Case] = {}
    for module in pkgutil.iter_modules(cases.__path__):
        for case in importlib.import_module(f"{cases.__name__}.{module.name}").CASES:
            if case.name in found:
                raise ValueError(f"Two cases are named {case.name!r}.")
            found[case.name] = case
    return found


def as_numbers(derivatives: list[list[np.ndarray]]) -> np.ndarray:
    """All orders and leaves in one row of float64; a complex number is two."""
    flat = []
    for leaves in derivatives:
        for leaf in leaves:
            row = np.ascontiguousarray(leaf).reshape(-1)
            if np.iscomplexobj(row):
                row = np.stack([np.real(row), np.imag(row)], axis=-1).reshape(-1)
            flat.append(row.astype(np.float64))
    return np.concatenate(flat) if flat else np.zeros(0)


def compare(case: Case, values: list[list[np.ndarray]], reference: np.ndarray) -> None:
    """Raise an `AssertionError` if derivatives differ from a stored row."""
    start = 0
    for k, leaves in enumerate(values):
        for leaf in leaves:
            numbers = as_numbers([[leaf]])
            expected = reference[start : start + numbers.size]
            start += numbers.size
            assert numbers.shape == expected.shape, f"order {k}: more numbers than are stored"
            if not case.finite:
                numbers, expected = (x[np.isfinite(expected)] for x in (numbers, expected))
            scale = np.max(np.abs(expected), initial=1e-30)
            error = np.max(np.abs(numbers - expected), initial=0.0)
            allowed = max(case.tolerance * scale, case.absolute)
            assert error <= allowed, f"order {k}: {numbers} instead of {expected}"
    # The reference has all orders of the case, and each has as many numbers.
    assert start * (case.orders + 1) == reference.size * len(values)


def check_stored(case: Case, stored: np.ndarray) -> None:
    """Raise an `AssertionError` if a stored row is not what nested `jvp` gives."""
    # Entries that are zero by cancellation are rounding noise, so the same measure as above holds.
    case = dataclasses.replace(case, tolerance=max(1e-9, case.tolerance))
    compare(case, reference_values(case), stored)


def load() -> dict[str, np.ndarray]:
    """The stored values by name of the case."""
    with np.load(PATH, allow_pickle=False) as file:
        index, numbers = json.loads(str(file["index"])), file["numbers"]
    return {name: numbers[start:stop] for name, (start, stop) in index.items()}


def store(rows: dict[str, np.ndarray]) -> None:
    """Write all values, ordered by name."""
    index, start = {}, 0
    for name in sorted(rows):
        index[name] = (start, start + rows[name].size)
        start += rows[name].size
    numbers = np.concatenate([rows[name] for name in sorted(rows)])
    np.savez_compressed(PATH, index=json.dumps(index), numbers=numbers)


def _prepare() -> None:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    # One process cannot hold the compiled programs of all cases.
    jax.clear_caches()


def _compute(name: str) -> tuple[str, np.ndarray]:
    _prepare()
    return name, as_numbers(reference_values(all_cases()[name]))


@functools.cache
def _stored() -> dict[str, np.ndarray]:
    return load()


def _check(name: str) -> tuple[str, str]:
    _prepare()
    try:
        check_stored(all_cases()[name], _stored()[name])
    except AssertionError as error:
        return name, str(error) or "fewer numbers than are stored"
    return name, ""


def check(starts: list[str]) -> int:
    """Compute again what is stored, and return the number of cases that differ."""
    names = [n for n in load() if not starts or any(n.startswith(start) for start in starts)]
    num_different = 0
    with multiprocessing.get_context("spawn").Pool() as pool:
        for name, problem in pool.imap_unordered(_check, names, chunksize=4):
            if problem:
                num_different += 1
                sys.stdout.write(f"{name}: {problem}\n")
    sys.stdout.write(f"{len(names)} cases, {num_different} of which differ from what is stored.\n")
    return num_different


def main(again: list[str]) -> None:
    """Compute what is missing and what is asked for."""
    stored = load() if PATH.exists() else {}
    names = all_cases().keys()
    rows = {name: row for name, row in stored.items() if name in names}
    todo = [n for n in names if n not in rows or any(n.startswith(start) for start in again)]
    with multiprocessing.get_context("spawn").Pool() as pool:
        for i, (name, row) in enumerate(pool.imap_unordered(_compute, todo, chunksize=4), start=1):
            rows[name] = row
            if i % 100 == 0:
                store(rows)
    store(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        sys.exit(check(sys.argv[2:]) > 0)
    main(sys.argv[1:])
