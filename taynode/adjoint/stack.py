"""A stack of fixed size that never overflows."""

import functools as ft
from typing import Any, NamedTuple

import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, PyTree


class Stack(NamedTuple):
    """Entries that belong to steps of a loop, in the order of the steps.

    If the stack is full, every second entry is dropped: its slot is used again, and from then on
    entries are for every second step. No entry is moved.

    - `slots`: the entries. Each leaf has an axis of slots in front.
    - `order`: the slot of each entry.
    - `steps`: the number of the step of each entry.
    - `size`: the number of entries.
    - `stride`: the number of steps from one entry to the next.
    """

    slots: PyTree[Array]
    order: Int[Array, " slots"]
    steps: Int[Array, " slots"]
    size: Int[Array, ""]
    stride: Int[Array, ""]

    @property
    def top(self) -> Int[Array, ""]:
        """The step of the last entry."""
        return self.steps[self.size - 1]

    def read(self, position: Int[Array, ""]) -> PyTree[Array]:
        """One of the entries."""
        slot = self.order[position]
        return jtu.tree_map(lambda xs: _reader(0)(xs, slot), self.slots)

    def push(self, step: Int[Array, ""], entry: PyTree[Array], keep: Bool[Array, ""]) -> "Stack":
        """Add an entry, or not."""
        # An entry that is not kept is written, too, to be overwritten by the next one.
        slot = self.order[self.size]
        slots = jtu.tree_map(lambda xs, x: _writer(0)(xs, x, slot), self.slots, entry)
        steps = self.steps.at[self.size].set(step)
        return self._replace(
            slots=slots, steps=steps, size=self.size + keep.astype(self.size.dtype)
        )

    def pop(self) -> "Stack":
        """Remove the last entry."""
        return self._replace(size=self.size - 1)

    def thinned(self) -> "Stack":
        """Drop every second entry if the stack is full."""
        full = self.size == self._capacity
        even_first = lambda x: jnp.concatenate([x[:-1:2], x[1:-1:2], x[-1:]])
        return self._replace(
            order=jnp.where(full, even_first(self.order), self.order),
            steps=jnp.where(full, even_first(self.steps), self.steps),
            size=jnp.where(full, self.size // 2, self.size),
            stride=jnp.where(full, 2 * self.stride, self.stride),
        )

    def spacing(self, end: Int[Array, ""]) -> Int[Array, ""]:
        """The number of steps from one entry to the next, if free slots are to reach to `end`."""
        parts = jnp.maximum(self._capacity + 1 - self.size, 1)
        return -((self.top - end) // parts)

    @property
    def _capacity(self) -> int:
        return self.order.shape[0] - 1


def empty_stack(entry: PyTree[Any], capacity: int) -> Stack:
    """A stack without entries.

    **Arguments:**

    - `entry`: what entries look like.
    - `capacity`: the number of entries. It must be even, if the stack is ever thinned. One more
        slot is for an entry that is not kept.
    """
    slots = jtu.tree_map(lambda x: jnp.zeros((capacity + 1, *x.shape), x.dtype), entry)
    order = jnp.arange(capacity + 1, dtype=jnp.int32)
    return Stack(slots, order, jnp.zeros_like(order), jnp.int32(0), jnp.int32(1))


# JAX turns slices into gathers and scatters if they are vmapped. Here the slot is the same for the
# whole batch, so a slice of the larger array does. With nothing batched, JAX calls the rules of
# `custom_vmap` for a batch of tangents.


@ft.cache
def _reader(axis: int) -> Any:
    def plain(xs, slot):
        return lax.dynamic_index_in_dim(xs, slot, axis, keepdims=False)

    read = custom_vmap(plain)

    @read.def_vmap
    def _(axis_size, in_batched, xs, slot):
        del axis_size
        xs_batched, slot_batched = in_batched
        assert not slot_batched
        return (_reader(axis + 1) if xs_batched else plain)(xs, slot), xs_batched

    return read


@ft.cache
def _writer(axis: int) -> Any:
    def plain(xs, x, slot):
        return lax.dynamic_update_index_in_dim(xs, x, slot, axis)

    write = custom_vmap(plain)

    @write.def_vmap
    def _(axis_size, in_batched, xs, x, slot):
        xs_batched, x_batched, slot_batched = in_batched
        assert not slot_batched
        if not (xs_batched or x_batched):
            return plain(xs, x, slot), False
        spread = lambda x, batched: x if batched else jnp.broadcast_to(x, (axis_size, *x.shape))
        return _writer(axis + 1)(spread(xs, xs_batched), spread(x, x_batched), slot), True

    return write
