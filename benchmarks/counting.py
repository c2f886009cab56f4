"""Exact costs, read off a jaxpr before XLA sees it."""

import collections
from collections.abc import Iterator

import jax
import jax.tree_util as jtu
from jax.extend.core import ClosedJaxpr, Jaxpr, Primitive


def count_primitives(fun, *args) -> collections.Counter:
    """How often each primitive occurs in `fun`, in called functions too."""
    return collections.Counter(
        primitive.name for primitive in _primitives(jax.make_jaxpr(fun)(*args).jaxpr)
    )


def primitives_of(fun, *args) -> set[Primitive]:
    """The primitives in `fun`, in called functions too."""
    return set(_primitives(jax.make_jaxpr(fun)(*args).jaxpr))


def _primitives(jaxpr: Jaxpr) -> Iterator[Primitive]:
    for eqn in jaxpr.eqns:
        yield eqn.primitive
        for inner in jtu.tree_leaves(
            list(eqn.params.values()), is_leaf=lambda x: isinstance(x, Jaxpr | ClosedJaxpr)
        ):
            if isinstance(inner, ClosedJaxpr):
                yield from _primitives(inner.jaxpr)
            elif isinstance(inner, Jaxpr):
                yield from _primitives(inner)


def count_products(fun, *args) -> int:
    """Matrix products and convolutions."""
    counts = count_primitives(fun, *args)
    return counts["dot_general"] + counts["conv_general_dilated"]
