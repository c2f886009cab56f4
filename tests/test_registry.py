"""Names: each stands for something, and a wrong one is told from the nearest right ones."""

import pytest

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
