"""The loop over the output times in a step, whose iterations do not depend on one another."""

from collections.abc import Callable
from typing import Any

import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.custom_derivatives import SymbolicZero

from .manual_axes import varying, varying_axes
from .plan import Marks
from .traced_loop import trace_loop, TracedLoop


def saving_loop(
    cond_fun: Callable,
    body_fun: Callable,
    init_val: Any,
    *,
    max_steps: int,
    buffers: Callable,
    checkpoints: int,
) -> Any:
    """As `equinox.internal.while_loop`, for the loop over output times in diffrax.

    Each iteration writes to its own places of the buffers. Apart from buffers, it carries integers
    only. So the reverse pass can go through the iterations once more, without storing anything.
    """
    del checkpoints
    if max_steps == 0:
        return init_val
    loop = trace_loop(cond_fun, body_fun, init_val, max_steps, buffers)
    return loop.run(_differentiable(loop))


def _differentiable(loop: TracedLoop) -> Any:
    num_closed, num_leaves = len(loop.closed), len(loop.leaves)
    carried = [i for i in range(num_leaves) if i not in loop.buffers]
    advance = loop.body.returning(carried)
    axes = varying_axes(loop.leaves)
    structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in loop.leaves]

    def with_state(state):
        # The reverse pass does not read buffers.
        empty = [jnp.zeros(x.shape, x.dtype) for x in structs]
        leaves = varying(empty, axes)
        for i, x in zip(carried, state, strict=True):
            leaves[i] = x
        return leaves

    @jax.custom_vjp
    def run(leaves, closed, cond_closed):
        condition = lambda x: loop.cond(*cond_closed, *x)[0]
        return lax.while_loop(condition, lambda x: loop.body(*closed, *x), list(leaves))

    def forward(leaves, closed, cond_closed):
        marks = Marks(*(tuple(x.perturbed for x in xs) for xs in (leaves, closed)))
        leaves, closed, cond_closed = (
            [x.value for x in xs] for xs in (leaves, closed, cond_closed)
        )
        state = [leaves[i] for i in carried]
        return run(leaves, closed, cond_closed), (marks, state, closed, cond_closed)

    def backward(residuals, cotangents):
        marks, state, closed, cond_closed = residuals
        written = [i for i in loop.buffers if not isinstance(cotangents[i], SymbolicZero)]
        write = loop.body.returning(written)
        relevant = write.relevant([True] * len(written))[:num_closed]
        wanted = [i for i in range(num_closed) if relevant[i] and marks.closed[i]]
        of_buffers = varying([cotangents[i] for i in written], axes)

        def step(carry):
            state, sums = carry

            def differentiable(values):
                new = list(closed)
                for i, x in zip(wanted, values, strict=True):
                    new[i] = x
                return write(*new, *with_state(state))

            _, vjp = jax.vjp(differentiable, [closed[i] for i in wanted])
            (more,) = vjp(of_buffers)
            return advance(*closed, *with_state(state)), jtu.tree_map(jnp.add, sums, more)

        sums = varying([jnp.zeros_like(closed[i]) for i in wanted], axes)
        condition = lambda carry: loop.cond(*cond_closed, *with_state(carry[0]))[0]
        _, sums = lax.while_loop(condition, step, (state, sums))
        of_leaves, of_closed = [None] * num_leaves, [None] * num_closed
        for i, x in zip(written, of_buffers, strict=True):
            of_leaves[i] = x
        for i, x in zip(wanted, sums, strict=True):
            of_closed[i] = x
        return of_leaves, of_closed, None

    run.defvjp(forward, backward, symbolic_zeros=True)
    return run
