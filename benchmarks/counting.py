"""Exact costs, read off a jaxpr before XLA sees it."""

import collections

import jax
import jax.tree_util as jtu
from jax.extend.core import ClosedJaxpr, Jaxpr


def count_primitives(fun, *args) -> collections.Counter:
    """How often each primitive occurs in `fun`, in called functions too."""
    counter: collections.Counter = collections.Counter()
    _count(jax.make_jaxpr(fun)(*args).jaxpr, counter)
    return counter


def _count(jaxpr: Jaxpr, counter: collections.Counter) -> None:
    for eqn in jaxpr.eqns:
        counter[eqn.primitive.name] += 1
        for inner in jtu.tree_leaves(
            list(eqn.params.values()), is_leaf=lambda x: isinstance(x, Jaxpr | ClosedJaxpr)
        ):
            if isinstance(inner, ClosedJaxpr):
                _count(inner.jaxpr, counter)
            elif isinstance(inner, Jaxpr):
                _count(inner, counter)


def count_products(fun, *args) -> int:
    """Matrix products and convolutions."""
    counts = count_primitives(fun, *args)
    return counts["dot_general"] + counts["conv_general_dilated"]
