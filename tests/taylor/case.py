"""What a correctness case of the Taylor engine is, and the reference it is held to.

A case is a function and a point. The test moves the point along a generic curve x(s) of degree 5
and compares the derivatives of s -> fun(x(s)) at s = 0 with nested `jax.jvp`, which shares no code
with the engine. Nested `jvp` of order 5 is slow to compile, so its values are stored in
`references.npz`; `python -m tests.taylor.make_references` makes that file and checks it, and the
slow suite recomputes a sample of it.
"""

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np


ORDER = 5


@dataclasses.dataclass(frozen=True)
class Case:
    """One function at one point.

    - `name`: unique, `family/what`.
    - `fun`: takes the arrays of `point`, returns an array or a pytree of arrays; integer and
        boolean outputs are ignored.
    - `point`: the arguments at s = 0, NumPy arrays. Integer and boolean arguments stay constant.
    - `tolerance`: relative to the largest entry of each derivative.
    - `absolute`: an error up to this counts as none, for results that are zero by cancellation.
    - `reference`: used instead of nested `jvp` where that is itself wrong or fails. Takes
        `(curve, order)`, `curve(s)` being the tuple of arguments as polynomials in a scalar s, and
        returns the list of derivatives 0..order as pytrees like `fun`'s output. Say why in `why`.
    - `orders`: how many derivatives are compared (lower it only with a reason, in `why`).
    - `finite`: False where the derivatives are infinite or undefined in JAX's own convention too;
        then only the orders at which the reference is finite are compared.
    """

    name: str
    fun: Callable[..., Any]
    point: tuple[Any, ...]
    tolerance: float = 1e-10
    absolute: float = 0.0
    reference: Callable[..., Any] | None = None
    orders: int = ORDER
    finite: bool = True
    why: str = ""

    def curve_coefficients(self) -> list[list[np.ndarray | None]]:
        """For each argument its coefficients 1..ORDER (None for integers and booleans)."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        coefficients = []
        for x in self.point:
            x = np.asarray(x)
            if np.issubdtype(x.dtype, np.complexfloating):
                draw = lambda x=x: rng.normal(size=x.shape) + 1j * rng.normal(size=x.shape)
            elif np.issubdtype(x.dtype, np.floating):
                draw = lambda x=x: rng.normal(size=x.shape)
            else:
                coefficients.append([None] * ORDER)
                continue
            # Decreasing sizes keep all orders of comparable magnitude.
            terms = [np.asarray(0.6 * draw() / (j + 1), dtype=x.dtype) for j in range(ORDER)]
            coefficients.append(terms)
        return coefficients

    def curve(self, s):
        """The arguments at curve parameter `s`."""
        args = []
        for x, terms in zip(self.point, self.curve_coefficients(), strict=True):
            value = jnp.asarray(x)
            for j, term in enumerate(terms, start=1):
                if term is not None:
                    value = value + jnp.asarray(term) * (s**j).astype(term.dtype)
            args.append(value)
        return tuple(args)


def nested_jvp(fun, order):
    """Derivatives 0..order of `fun` at 0 by nesting `jax.jvp`; a list of pytrees."""

    def derivative(g):
        return lambda s: jax.jvp(g, (s,), (jnp.ones_like(s),))[1]

    derivatives = []
    for k in range(order + 1):
        derivatives.append(jax.jit(fun)(jnp.array(0.0)))
        if k < order:
            fun = derivative(fun)
    return derivatives


def inexact_leaves(tree):
    """The leaves that have derivatives; integers and booleans are constant along a curve."""
    leaves = [jnp.asarray(leaf) for leaf in jtu.tree_leaves(tree)]
    return [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact)]


def reference_values(case: Case) -> list[list[np.ndarray]]:
    """Derivatives 0..orders of the case, each the flat list of output leaves."""

    def fun(s):
        return inexact_leaves(case.fun(*case.curve(s)))

    if case.reference is not None:
        derivatives = case.reference(case.curve, case.orders)
    else:
        derivatives = nested_jvp(fun, case.orders)
    return [[np.asarray(leaf) for leaf in jtu.tree_leaves(d)] for d in derivatives]
