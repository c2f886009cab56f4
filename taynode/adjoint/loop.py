"""A while loop whose reverse pass visits accepted steps only."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax.tree_util as jtu

from .batches import Loop, loop_p
from .names import FIRST_SLOPE
from .plan import make_plan, Roles
from .traced_loop import trace_loop


def accepted_step_loop(
    cond_fun: Callable,
    body_fun: Callable,
    init_val: Any,
    *,
    max_steps: int | None,
    buffers: Callable,
    capacity: Callable[[Sequence[Any]], int],
) -> Any:
    """As `equinox.internal.while_loop`, for the loop over steps in diffrax.

    `capacity` chooses how many states to store, given the shapes and dtypes of their leaves.
    """
    if max_steps == 0:
        return init_val
    loop = trace_loop(cond_fun, body_fun, init_val, max_steps, buffers)
    _, running, _, state = loop.numbers
    roles = Roles(
        buffers=loop.buffers,
        running=running,
        tprev=state.tprev,
        tnext=state.tnext,
        control=jtu.tree_leaves((state.tprev, state.tnext, state.controller_state)),
    )
    plan_for = lambda marks: make_plan(loop.body, roles, marks, max_steps, capacity)
    body = loop.body.without(FIRST_SLOPE)
    sizes = len(loop.leaves), len(loop.closed), len(loop.cond_closed)
    in_batches = Loop(body, loop.cond, plan_for, sizes)
    return loop.run(lambda *inputs: loop_p.bind(*itertools.chain(*inputs), loop=in_batches))
