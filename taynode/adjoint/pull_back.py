"""The reverse pass of a loop: the vjp of each stored step, from the last to the first."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox.internal as eqxi
import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Int

from .manual_axes import varying, varying_axes
from .plan import Plan
from .program import Program
from .record import Entry, Record
from .stack import Stack


Cotangents = list[Array | None]


def pull_back(
    plan: Plan,
    record: Record,
    closed: Sequence[Array],
    cotangents: Sequence[Any],
    *,
    batch_names: Sequence[Any] = (),
) -> tuple[Cotangents, Cotangents]:
    """Compute the cotangents of the first state and of the values that the body closes over.

    The caller applies `jax.vmap` once for each of `batch_names`, which are names of axes or `None`.
    The cotangents of values that are not batched are sums over the batch.
    """
    leaf_marks, closed_marks = _relevant(plan, cotangents)
    buffers = [i for i in plan.roles.buffers if leaf_marks[i]]
    carried = [i for i, mark in enumerate(leaf_marks) if mark and i not in buffers]
    wanted = [i for i, mark in enumerate(closed_marks) if mark]
    position = {leaf: i for i, leaf in enumerate(plan.outputs)}
    step = plan.step.returning(position[i] for i in (*carried, *buffers))
    # Each step writes to other places of a buffer, so its cotangent is the same for all steps.
    of_buffers = [cotangents[i] for i in buffers]

    vjp_of_step = _vjp_of_step(plan, step, carried, wanted, batch_names)

    def body(carry):
        number, stack, of_state, of_values = carry
        if plan.replays:
            stack = _with_entry(plan, closed, stack, number - 1)
            entry = stack.read(stack.size - 1)
            stack = stack.pop()
        else:
            entry = record.stack.read(number - 1)
        of_state, more = vjp_of_step(entry, [*of_state, *of_buffers], list(closed))
        return number - 1, stack, of_state, jtu.tree_map(jnp.add, of_values, more)

    axes = varying_axes(record.stack.slots)
    first = (
        record.num_steps,
        record.stack if plan.replays else None,
        varying([_materialized(cotangents[i], plan.structs[i]) for i in carried], axes),
        varying([jnp.zeros_like(closed[i]) for i in wanted], axes),
    )
    _, _, of_state, of_values = lax.while_loop(lambda carry: carry[0] > 0, body, first)
    nothing = [None] * len(plan.perturbed)
    of_leaves = _with(_with(nothing, carried, of_state), buffers, of_buffers)
    return of_leaves, _with([None] * len(closed), wanted, of_values)


def _vjp_of_step(
    plan: Plan,
    step: Program,
    carried: Sequence[int],
    wanted: Sequence[int],
    batch_names: Sequence[Any],
    batches: tuple[tuple[bool, ...], ...] = (),
) -> Callable[[Entry, list[Array], list[Array]], tuple[list[Array], list[Array]]]:
    """A function that takes the cotangents after a step to those before it.

    In each of the batches, the entry and the cotangents are batched, and some of the values that
    the step closes over are.
    """

    def mapped(function: Callable, *batched_too: int) -> Callable:
        for name, batched in zip(batch_names, batches, strict=False):
            axes = [0 if b else None for b in batched]
            options = {} if name is None else {"axis_name": name}
            function = jax.vmap(function, (0, *batched_too, axes), **options)
        return function

    def vjp_of_step(entry, cotangents, closed):
        def make(entry, states, closed):
            known = varying(plan.known(entry.end), varying_axes(entry))
            return step(*closed, *_with(_state(plan, entry), carried, states), *known)

        def differentiable(states, values):
            return mapped(make, 0)(entry, states, _with(closed, wanted, values))

        before = mapped(lambda entry, closed: _state(plan, entry))(entry, closed)
        _, vjp = jax.vjp(differentiable, [before[i] for i in carried], [closed[i] for i in wanted])
        return vjp(varying(cotangents, varying_axes(entry)))

    if len(batches) == len(batch_names):
        return vjp_of_step
    in_batch = custom_vmap(vjp_of_step)

    @in_batch.def_vmap
    def _(axis_size, in_batched, entry, cotangents, closed):
        spread = lambda x, batched: x if batched else jnp.broadcast_to(x, (axis_size, *x.shape))
        entry, cotangents = jtu.tree_map(spread, (entry, cotangents), tuple(in_batched[:2]))
        batched = tuple(in_batched[2])
        function = _vjp_of_step(plan, step, carried, wanted, batch_names, (*batches, batched))
        of_state, of_values = function(entry, cotangents, closed)
        return (of_state, of_values), ([True] * len(of_state), [batched[i] for i in wanted])

    return in_batch


def _relevant(plan: Plan, cotangents: Sequence[Any]) -> tuple[list[bool], list[bool]]:
    """Whether leaves of the state and closed-over values have a cotangent, at any step."""
    num_closed = len(plan.marks.closed)
    leaves = [
        perturbed and not isinstance(cotangent, SymbolicZero)
        for perturbed, cotangent in zip(plan.perturbed, cotangents, strict=True)
    ]
    while True:
        before = plan.step.relevant([leaves[i] for i in plan.outputs])
        closed, others = before[:num_closed], before[num_closed : num_closed + len(leaves)]
        new = [
            was or (mark and perturbed and i not in plan.roles.buffers)
            for i, (was, mark, perturbed) in enumerate(
                zip(leaves, others, plan.perturbed, strict=True)
            )
        ]
        if new == leaves:
            return leaves, [a and b for a, b in zip(closed, plan.marks.closed, strict=True)]
        leaves = new


def _state(plan: Plan, entry: Entry) -> list[Array]:
    """The state before a step."""
    roles = plan.roles
    leaves = _placed(plan, entry.state)
    leaves[roles.running] = entry.takes_part
    if not plan.every_attempt:
        # The derivative of a rejected step may be infinite. That of a step of length zero is not.
        leaves[roles.tnext] = jnp.where(entry.takes_part, leaves[roles.tnext], leaves[roles.tprev])
    return leaves


def _with_entry(plan: Plan, closed: Sequence[Array], stack: Stack, number: Int[Array, ""]) -> Stack:
    """Make steps again, until the last entry of the stack is that of this step."""

    def missing(carry):
        _, state, stack = carry
        # Rounding may differ from that of the forward pass, so the end may come early.
        running = state[plan.stored.index(plan.roles.running)]
        return (stack.top < number) & eqxi.unvmap_any(running)

    def again(carry):
        step, state, stack = carry
        leaves = _placed(plan, state)
        after, takes_part, end = plan.replay(closed, leaves)
        accepted = eqxi.unvmap_any(takes_part)
        distant = (step == number) | (step - stack.top >= stack.spacing(number))
        keep = accepted & (step > stack.top) & distant
        step_after = step + accepted.astype(step.dtype)
        return step_after, after, stack.push(step, Entry(state, takes_part, end), keep)

    first = (stack.top, stack.read(stack.size - 1).state, stack)
    _, _, stack = lax.while_loop(missing, again, first)
    return stack


def _placed(plan: Plan, state: list[Array]) -> list[Array]:
    """All leaves of the state. Those that are not stored are zero."""
    zeros = varying([jnp.zeros(s.shape, s.dtype) for s in plan.structs], varying_axes(state))
    return _with(zeros, plan.stored, state)


def _with(values: Sequence[Any], places: Sequence[int], new: Sequence[Any]) -> list[Any]:
    values = list(values)
    for i, x in zip(places, new, strict=True):
        values[i] = x
    return values


def _materialized(cotangent: Any, struct: jax.ShapeDtypeStruct) -> Array:
    zero = isinstance(cotangent, SymbolicZero)
    return jnp.zeros(struct.shape, struct.dtype) if zero else cotangent
