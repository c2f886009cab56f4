"""A loop of diffrax as jaxprs."""

import functools as ft
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.tree_util as jtu
from jaxtyping import Array

from .manual_axes import varying, varying_axes
from .private import common_rewrite, fixed_asarray
from .program import Program, trace


class TracedLoop(NamedTuple):
    """A loop as functions of flat lists of arrays.

    - `body`, `cond`: they are functions of the values that they close over and of the leaves of the
        state.
    - `leaves`: the leaves of the first state.
    - `closed`, `cond_closed`: the values that body and condition close over.
    - `numbers`: the pytree of the state with the number of each leaf in its place.
    - `buffers`: the numbers of leaves that are outputs, which each step may write to.
    """

    body: Program
    cond: Program
    leaves: Sequence[Array]
    closed: Sequence[Array]
    cond_closed: Sequence[Array]
    numbers: Any
    buffers: Sequence[int]

    def run(self, function: Callable) -> Any:
        """Apply a function that returns the leaves of the last state, and return that state."""
        last = function(self.leaves, self.closed, self.cond_closed)
        _, _, _, value = jtu.tree_map(lambda i: last[i], self.numbers)
        return value


def trace_loop(
    cond_fun: Callable, body_fun: Callable, init_val: Any, max_steps: int | None, buffers: Callable
) -> TracedLoop:
    """Trace a loop, see `equinox.internal.while_loop` for the arguments.

    The state of the traced loop has some more leaves. Under `jax.vmap`, the loop goes on as long as
    one of the samples does, and the others keep their state.
    """
    axes = varying_axes(init_val)
    cond_fun, body_fun, init_val, get_buffers = common_rewrite(
        cond_fun,
        _varying_body(body_fun, axes),
        varying(jtu.tree_map(fixed_asarray, init_val), axes),
        max_steps,
        buffers,
        makes_false_steps=False,
    )
    leaves, treedef = jtu.tree_flatten(varying(init_val, axes))
    # Its own leaves vary, too.
    flat_body = lambda *x: varying(jtu.tree_leaves(body_fun(treedef.unflatten(x))), axes)
    body, closed = trace(flat_body, *leaves)
    if axes:
        plain_body = ft.partial(body.without_equinox, *closed)
        body, closed = trace(plain_body, *leaves)
    cond, cond_closed = trace(lambda *x: cond_fun(treedef.unflatten(x)), *leaves)
    numbers = treedef.unflatten(range(len(leaves)))
    return TracedLoop(body, cond, leaves, closed, cond_closed, numbers, get_buffers(None)(numbers))


def _varying_body(body_fun: Callable, axes: tuple[str, ...]) -> Callable:
    return lambda val: varying(jtu.tree_map(fixed_asarray, body_fun(val)), axes)
