"""A while loop whose reverse pass visits accepted steps only."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.lax as lax
import jax.tree_util as jtu

from .names import FIRST_SLOPE
from .plan import make_plan, Marks, Roles
from .program import Program
from .pull_back import pull_back
from .record import record
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
    run = _differentiable(loop.body.without(FIRST_SLOPE), loop.cond, plan_for)
    return loop.run(run)


def _differentiable(body: Program, cond: Program, plan_for: Callable) -> Any:
    def condition(cond_closed):
        return lambda leaves: cond(*cond_closed, *leaves)[0]

    @jax.custom_vjp
    def run(leaves, closed, cond_closed):
        return lax.while_loop(condition(cond_closed), lambda x: body(*closed, *x), leaves)

    def forward(leaves, closed, cond_closed):
        marks = Marks(*(tuple(x.perturbed for x in xs) for xs in (leaves, closed)))
        leaves, closed, cond_closed = (
            [x.value for x in xs] for xs in (leaves, closed, cond_closed)
        )
        last, recorded = record(plan_for(marks), condition(cond_closed), leaves, closed)
        return last, (marks, recorded, closed)

    def backward(residuals, cotangents):
        marks, recorded, closed = residuals
        return (*pull_back(plan_for(marks), recorded, closed, cotangents), None)

    run.defvjp(forward, backward, symbolic_zeros=True)
    return run
