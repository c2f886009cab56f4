"""Compute the stored reference values: `python -m tests.taylor.make_references`.

One flat array of numbers and an index by name keep the file small and free of pickles.
"""

import importlib
import json
import multiprocessing
import pathlib
import pkgutil

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
                row = row.view(row.real.dtype)
            flat.append(row.astype(np.float64))
    return np.concatenate(flat) if flat else np.zeros(0)


def load() -> dict[str, np.ndarray]:
    """The stored values by name of the case."""
    with np.load(PATH, allow_pickle=False) as file:
        index, numbers = json.loads(str(file["index"])), file["numbers"]
    return {name: numbers[start:stop] for name, (start, stop) in index.items()}


def _compute(name: str) -> tuple[str, np.ndarray]:
    jax.config.update("jax_enable_x64", True)
    return name, as_numbers(reference_values(all_cases()[name]))


def main() -> None:
    """Compute and store them all."""
    names = sorted(all_cases())
    with multiprocessing.get_context("spawn").Pool() as pool:
        rows = dict(pool.imap_unordered(_compute, names, chunksize=8))
    index, start = {}, 0
    for name in names:
        index[name] = (start, start + rows[name].size)
        start += rows[name].size
    numbers = np.concatenate([rows[name] for name in names])
    np.savez_compressed(PATH, index=json.dumps(index), numbers=numbers)


if __name__ == "__main__":
    main()
