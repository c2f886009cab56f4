"""Names: each stands for something, and a wrong one is told from the nearest right ones."""

import pytest

import taynode
from taynode.registry import derivative_order, one_of, REGULARIZERS, SOLVERS, UnknownNameError


def test_derivative_orders():
    names = ("none", "r1", "r2", "r8", "r9", "rnode", "kinetic")
    assert [derivative_order(name) for name in names] == [None, 1, 2, 8, None, None, None]


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"`solver` 'dopri' is not known.*'dopri5'"):
        SOLVERS.find("dopri")
    with pytest.raises(UnknownNameError, match=r"`regularizer` 'x' .*choose from"):
        REGULARIZERS.check("x")
    one_of("scale", "smoke", ("smoke", "laptop"))


def test_a_star_imports_public_names_and_nothing_else():
    # BUG, fixed: it imported submodules, and none of the public names.
    found: dict[str, object] = {}
    exec("from taynode import *", found)
    assert set(found) - {"__builtins__"} == set(dir(taynode))
    assert {"diffeqsolve", "Budget"} <= found.keys()


def test_a_name_that_is_nearly_right_is_told():
    with pytest.raises(AttributeError) as error:
        taynode.TotalDerivativ  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    # From these, Python says which name was meant.
    assert (error.value.name, error.value.obj) == ("TotalDerivativ", taynode)
    assert "TotalDerivative" in dir(taynode)
