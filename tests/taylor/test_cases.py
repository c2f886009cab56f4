"""Every rule against nested `jvp`, at generic and at special points."""

import itertools
import math
import zlib

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest
from jax import lax
from jax.extend.core import Primitive, primitives

import taynode as tn
from benchmarks.counting import primitives_of
from taynode.taylor.registry import RULES

from .case import Case, inexact_leaves, ORDER
from .make_references import all_cases, check_stored, compare, load


CASES = all_cases()
REFERENCES = load()

# Cases of one family share a program, since compiling takes most of the time. The time to compile
# grows faster than the size, so that larger programs gain nothing.
CASES_PER_PROGRAM = 4
# Order 3 is the least in which every kind of term of a recurrence occurs. Higher orders repeat
# them in larger programs.
QUICK_ORDER = 3
# These have no recurrences of their own: they are linear, or made of operations that have cases
# of their own, some of very many. Order 2 has derivatives of derivatives.
COMPOSED = {
    *("branch", "call", "choice", "custom_jvp", "derivative", "dtypes", "effect", "equinox"),
    *("field", "gather", "implicit", "layer", "loop", "matrix", "scatter", "shape", "sorting"),
    *("factorization/polar", "special/poch@generic"),
}
QUICK_ORDER_OF_COMPOSED = 2


def programs():
    """The names of the cases of each program, as parameters of a test."""
    for family, group in itertools.groupby(sorted(CASES), key=lambda name: name.split("/")[0]):
        names = list(group)
        for i in range(0, len(names), CASES_PER_PROGRAM):
            chunk = names[i : i + CASES_PER_PROGRAM]
            yield pytest.param(chunk, id=f"{family}-{i // CASES_PER_PROGRAM}")


def engine_values(cases: list[Case], order: int) -> dict[str, list[list[np.ndarray]] | Exception]:
    """Derivatives 0..order of each case as the engine computes them, like `reference_values`.

    A case that cannot be traced has its exception instead.
    """
    failures = {}

    def evaluate(points):
        values = {}
        for case, point in zip(cases, points, strict=True):
            try:
                values[case.name] = jet_values(case, point, order_of(case, order))
            except Exception as error:
                failures[case.name] = error
        return values

    values = jax.jit(evaluate)([case.point for case in cases])
    return jtu.tree_map(np.asarray, values) | failures


def order_of(case: Case, order: int) -> int:
    """How many derivatives are compared."""
    if order == QUICK_ORDER and not COMPOSED.isdisjoint({case.name, case.name.split("/")[0]}):
        order = QUICK_ORDER_OF_COMPOSED
    return min(order, case.orders)


def jet_values(case: Case, point, order: int):
    series = [
        [0.0 if c is None else c * math.factorial(k) for k, c in enumerate(terms[:order], 1)]
        for terms in case.curve_coefficients()
    ]
    primals_out, series_out = tn.jet(case.fun, point, series)
    by_leaf = [
        [primal, *terms]
        for primal, terms in zip(
            jtu.tree_leaves(primals_out),
            jtu.tree_structure(primals_out).flatten_up_to(series_out),
            strict=True,
        )
        if jnp.issubdtype(primal.dtype, jnp.inexact)
    ]
    return [[leaf[k] for leaf in by_leaf] for k in range(order + 1)]


def test_each_case_has_its_reference():
    assert CASES.keys() == REFERENCES.keys()


@pytest.mark.slow
def test_each_primitive_with_a_rule_has_a_case():
    of_jax = {x for m in (primitives, lax) for x in vars(m).values() if isinstance(x, Primitive)}
    # It needs a mesh of devices.
    of_jax.remove(primitives.sharding_constraint_p)
    missing = RULES.keys() & of_jax
    # Those at special points have few primitives that the others lack.
    for name in sorted(CASES, key=lambda name: "@" in name and not name.endswith("@generic")):
        missing -= primitives_of(CASES[name].fun, *CASES[name].point)
        if not missing:
            break
    assert not missing


def test_composed_cases_exist():
    assert CASES.keys() | {name.split("/")[0] for name in CASES} >= COMPOSED


@pytest.mark.parametrize("module", [jax.nn, jnp.linalg])
def test_each_public_function_has_a_case_of_its_name(module):
    # They work on low-precision formats that are scaled in blocks, on GPUs only.
    elsewhere = {"get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"}
    # `matrix/power_negative` counts for `matrix_power`.
    cases = [name.replace("/", "_") for name in CASES]
    missing = [
        name
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and name not in elsewhere
        and not any(name in case for case in cases)
    ]
    assert not missing


@pytest.mark.parametrize("order", [QUICK_ORDER, pytest.param(ORDER, marks=pytest.mark.slow)])
@pytest.mark.parametrize("names", list(programs()))
def test_agrees_with_nested_jvp(names, order, subtests):
    values = engine_values([CASES[name] for name in names], order)
    for name in names:
        with subtests.test(name):
            result = values[name]
            if isinstance(result, Exception):
                raise result
            compare(CASES[name], result, REFERENCES[name])


# A sample, since the engine is compared with all of them. All are computed again by
# `python -m tests.taylor.make_references --check`.
@pytest.mark.slow
@pytest.mark.parametrize("name", [x for x in sorted(CASES) if zlib.crc32(x.encode()) % 16 == 0])
def test_stored_references_are_what_nested_jvp_gives(name):
    check_stored(CASES[name], REFERENCES[name])


def test_integer_outputs_are_left_out_of_the_comparison():
    assert len(inexact_leaves((jnp.arange(3), jnp.ones(2)))) == 1
