"""The loop with its state stored before each accepted step."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import equinox.internal as eqxi
import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from .manual_axes import varying, varying_axes
from .plan import Plan
from .stack import empty_stack, Stack


class Entry(NamedTuple):
    """The state before a step.

    - `state`: the stored leaves.
    - `takes_part`: whether the step is accepted. Under `jax.vmap`, a step is stored if a sample
        accepts it, and the others do not take part in it.
    - `end`: where the step ends, if known.
    """

    state: list[Array]
    takes_part: Bool[Array, ""]
    end: list[Array]


class Record(NamedTuple):
    """The stored entries, and the number of steps."""

    stack: Stack
    num_steps: Int[Array, ""]


def record(
    plan: Plan,
    going_on: Callable[[Sequence[Array]], Bool[Array, ""]],
    leaves: Sequence[Array],
    closed: Sequence[Array],
) -> tuple[list[Array], Record]:
    """Run the loop, and store its states."""

    def make(leaves):
        after, takes_part, end = plan.attempt(closed, leaves)
        return after, Entry([leaves[i] for i in plan.stored], takes_part, end)

    def step(carry):
        leaves, (stack, number) = carry
        after, entry = make(leaves)
        if plan.replays:
            stack = stack.thinned()
        accepted = eqxi.unvmap_any(entry.takes_part)
        stack = stack.push(number, entry, accepted & (number % stack.stride == 0))
        return after, Record(stack, number + accepted.astype(number.dtype))

    _, example = eqx.filter_eval_shape(make, leaves)
    first = Record(varying(empty_stack(example, plan.capacity), varying_axes(leaves)), jnp.int32(0))
    return lax.while_loop(lambda carry: going_on(carry[0]), step, (list(leaves), first))
