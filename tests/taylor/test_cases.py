"""Every rule against nested `jvp`, at generic and at special points."""

import dataclasses
import itertools
import math
import pathlib
import re

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest

import taynode as tn

from . import cases
from .case import Case, inexact_leaves, reference_values
from .make_references import all_cases, as_numbers, load


CASES = all_cases()
REFERENCES = load()


_FINISHED = itertools.count(1)


@pytest.fixture(autouse=True)
def _bounded_number_of_compiled_programs():
    """A process may hold only so many; LLVM fails to allocate memory somewhere above a thousand."""
    yield
    if next(_FINISHED) % 50 == 0:
        jax.clear_caches()


def engine_values(case: Case) -> list[list[np.ndarray]]:
    """Derivatives 0..orders of a case as the engine computes them, like `reference_values`."""
    series = [
        [0.0 if c is None else c * math.factorial(k) for k, c in enumerate(terms[: case.orders], 1)]
        for terms in case.curve_coefficients()
    ]
    primals_out, series_out = jax.jit(lambda *point: tn.jet(case.fun, point, series))(*case.point)
    treedef = jtu.tree_structure(primals_out)
    by_leaf = treedef.flatten_up_to(series_out)
    orders = [jtu.tree_leaves(primals_out), *([x[k] for x in by_leaf] for k in range(case.orders))]
    moving = [jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in orders[0]]
    return [
        [np.asarray(leaf) for leaf, moves in zip(leaves, moving, strict=True) if moves]
        for leaves in orders
    ]


def compare(case: Case, values: list[list[np.ndarray]], reference: np.ndarray) -> None:
    start = 0
    for k, leaves in enumerate(values):
        for leaf in leaves:
            numbers = as_numbers([[leaf]])
            expected = reference[start : start + numbers.size]
            start += numbers.size
            if not case.finite:
                numbers, expected = (x[np.isfinite(expected)] for x in (numbers, expected))
            scale = np.max(np.abs(expected), initial=1e-30)
            error = np.max(np.abs(numbers - expected), initial=0.0)
            allowed = max(case.tolerance * scale, case.absolute)
            assert error <= allowed, f"order {k}: {numbers} instead of {expected}"
    assert start == reference.size


def test_there_are_at_least_400_cases_and_each_has_its_reference():
    assert len(CASES) >= 400
    assert CASES.keys() == REFERENCES.keys()


@pytest.mark.parametrize("module", [jax.nn, jnp.linalg])
def test_no_public_function_was_forgotten(module):
    # They work on low-precision formats that are scaled in blocks, on GPUs only.
    elsewhere = {"get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"}
    sources = "".join(path.read_text() for path in pathlib.Path(cases.__file__).parent.glob("*.py"))
    missing = [
        name
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and name not in elsewhere
        and not re.search(rf"\.{name}\b", sources)
    ]
    assert not missing


@pytest.mark.parametrize("name", sorted(CASES))
def test_agrees_with_nested_jvp(name):
    compare(CASES[name], engine_values(CASES[name]), REFERENCES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES))
def test_stored_references_are_what_nested_jvp_gives(name):
    # Entries that are zero by cancellation are rounding noise, so the same measure as above holds.
    case = dataclasses.replace(CASES[name], tolerance=max(1e-9, CASES[name].tolerance))
    compare(case, reference_values(case), REFERENCES[name])


def test_integer_outputs_are_left_out_of_the_comparison():
    assert len(inexact_leaves((jnp.arange(3), jnp.ones(2)))) == 1
