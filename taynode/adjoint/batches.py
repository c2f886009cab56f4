"""A loop as a primitive of JAX, so that it knows the batches over which its gradient is summed.

Under `jax.grad` of `jax.vmap`, the gradient in a parameter that all samples share is a sum over the
samples. JAX would compute it for each of them, step by step, and add them up in the end. Here each
step of the reverse pass adds up its own, which is one product of matrices instead of many. Under
`jax.vmap` of `jax.grad` there is nothing to sum, and JAX differentiates before it makes batches.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from .manual_axes import varying_axes
from .plan import Marks, Plan
from .private import unmapped_aval
from .program import Program
from .pull_back import pull_back
from .record import Record, record
from .stack import Stack


class Batch(NamedTuple):
    """An axis in front of some of the inputs. `batched` tells which, in the order of the inputs."""

    size: int
    name: Any
    spmd_name: Any
    batched: tuple[bool, ...]


class Loop:
    """A loop over steps, for one sample or for batches of them.

    **Arguments:**

    - `body`, `cond`: functions of the values that they close over and of the leaves of the state.
    - `plan_for`: plans the reverse pass.
    - `sizes`: the numbers of leaves of the state, of values that the body closes over, and of
        values that the condition closes over. These are the inputs.
    - `batches`: the axes of the inputs, from the innermost one on.
    """

    def __init__(
        self,
        body: Program,
        cond: Program,
        plan_for: Callable[[Marks], Plan],
        sizes: tuple[int, int, int],
        batches: tuple[Batch, ...] = (),
    ):
        self.body, self.cond, self.plan_for = body, cond, plan_for
        self.sizes, self.batches = sizes, batches

    def in_batch(self, batch: Batch) -> "Loop":
        """The same loop for a batch."""
        return Loop(self.body, self.cond, self.plan_for, self.sizes, (*self.batches, batch))

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The leaves, and what body and condition close over, of a list with all inputs."""
        leaves, closed, _ = self.sizes
        values = list(values)
        return values[:leaves], values[leaves : leaves + closed], values[leaves + closed :]

    def __call__(self, *inputs: Any) -> list[Array]:
        """Run the loop. All leaves of the last state have all axes of batches."""
        # Literals are not arrays.
        return _differentiable(self)(*self.split([jnp.asarray(x) for x in inputs]))

    def mapped(self, function: Callable, out_axes: Any) -> Callable:
        """A function of the inputs of one sample, for the batches."""
        for batch in self.batches:
            axes = self.split([0 if batched else None for batched in batch.batched])
            function = _vmap(function, batch, tuple(axes), out_axes)
        return function


def _vmap(function: Callable, batch: Batch, in_axes: Any, out_axes: Any) -> Callable:
    options = {"axis_name": batch.name, "spmd_axis_name": batch.spmd_name}
    options = {name: x for name, x in options.items() if x is not None}
    return jax.vmap(function, in_axes, out_axes, axis_size=batch.size, **options)


# Samples of a batch make their steps together, so they are stored in the same slots.
_SHARED: Any = None
_RECORD_AXES = Record(Stack(0, _SHARED, _SHARED, _SHARED, _SHARED), _SHARED)


def _differentiable(loop: Loop) -> Any:
    condition = lambda cond_closed: lambda leaves: loop.cond(*cond_closed, *leaves)[0]

    @jax.custom_vjp
    def run(leaves, closed, cond_closed):
        def plain(leaves, closed, cond_closed):
            step = lambda leaves: loop.body(*closed, *leaves)
            return jax.lax.while_loop(condition(cond_closed), step, leaves)

        return loop.mapped(plain, 0)(leaves, closed, cond_closed)

    def forward(leaves, closed, cond_closed):
        marks = Marks(*(tuple(x.perturbed for x in xs) for xs in (leaves, closed)))
        inputs = [[x.value for x in xs] for xs in (leaves, closed, cond_closed)]
        axes = set(varying_axes(inputs[0]))
        if any(x.perturbed and axes - {*varying_axes(x.value)} for x in closed):
            raise ValueError(
                "Inside of `jax.shard_map`, `AcceptedStepAdjoint` has no gradient in arrays that a "
                "vector field closes over. Pass them through `args`, or keep them in the terms."
            )
        plan = loop.plan_for(marks)

        def plain(leaves, closed, cond_closed):
            return record(plan, condition(cond_closed), leaves, closed)

        last, recorded = loop.mapped(plain, (0, _RECORD_AXES))(*inputs)
        return last, (marks, recorded, inputs[1])

    def backward(residuals, cotangents):
        marks, recorded, closed = residuals
        of_leaves, of_closed = _pull_back(loop, loop.plan_for(marks), recorded, closed, cotangents)
        return of_leaves, of_closed, None

    run.defvjp(forward, backward, symbolic_zeros=True)
    return run


def _pull_back(
    loop: Loop, plan: Plan, recorded: Record, closed: list[Array], cotangents: Sequence[Any]
) -> tuple[list[Array | None], list[Array | None]]:
    """The reverse pass for batches. Cotangents of what samples share are sums over samples."""
    known = [i for i, x in enumerate(cotangents) if not isinstance(x, SymbolicZero)]

    def function(recorded, closed, given):
        every = [given[known.index(i)] if i in known else x for i, x in enumerate(cotangents)]
        names = [batch.name for batch in loop.batches]
        return pull_back(plan, recorded, closed, every, batch_names=names)

    flags = [loop.split(batch.batched) for batch in loop.batches]
    for batch, (_, shared, _) in zip(loop.batches, flags, strict=True):
        axes = [0 if batched else None for batched in shared]
        function = _vmap(function, batch, (_RECORD_AXES, axes, 0), (0, axes))
    of_leaves, of_closed = function(recorded, closed, [cotangents[i] for i in known])
    # The last batch is the outermost axis.
    for number, x in enumerate(of_leaves):
        alone = [axis for axis, (leaves, _, _) in enumerate(reversed(flags)) if not leaves[number]]
        if x is not None and alone:
            of_leaves[number] = jnp.sum(x, axis=tuple(alone))
    return of_leaves, of_closed


loop_p = Primitive("accepted_step_loop")
loop_p.multiple_results = True


@loop_p.def_impl
def _(*inputs: Any, loop: Loop) -> list[Array]:
    return loop(*inputs)


@loop_p.def_effectful_abstract_eval
def _(*avals: Any, loop: Loop) -> Any:
    leaves, _, _ = loop.split(avals)
    for batch in loop.batches:
        pairs = zip(leaves, batch.batched, strict=False)
        leaves = [x if b else unmapped_aval(batch.size, 0, x) for x, b in pairs]
    return leaves, loop.body.jaxpr.effects | loop.cond.jaxpr.effects


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, loop: Loop) -> Any:
    moving = [i for i, x in enumerate(tangents) if not isinstance(x, ad.Zero)]

    # What has no tangent is constant, so that the loop knows.
    def run(*values):
        inputs = list(primals)
        for i, x in zip(moving, values, strict=True):
            inputs[i] = x
        return loop(*inputs)

    of = lambda xs: [xs[i] for i in moving]
    last, found = jax.jvp(run, of(primals), of(tangents))
    is_none = lambda x: x.dtype == jax.dtypes.float0
    zero = lambda y: ad.Zero(jax.typeof(y).to_tangent_aval())
    return last, [zero(y) if is_none(x) else x for y, x in zip(last, found, strict=True)]


def _batch(axis: Any, inputs: Sequence[Any], dims: Sequence[int | None], *, loop: Loop) -> Any:
    batched = tuple(dim is not None for dim in dims)
    if not any(batched):
        return loop_p.bind(*inputs, loop=loop), [None] * loop.sizes[0]
    front = lambda x, dim: x if dim is None else jnp.moveaxis(x, dim, 0)
    inputs = [front(x, dim) for x, dim in zip(inputs, dims, strict=True)]
    batch = Batch(axis.size, axis.name, axis.spmd_name, batched)
    last = loop_p.bind(*inputs, loop=loop.in_batch(batch))
    return last, [0] * len(last)


ad.primitive_jvps[loop_p] = _jvp
batching.fancy_primitive_batchers[loop_p] = _batch
mlir.register_lowering(loop_p, mlir.lower_fun(lambda *x, loop: loop(*x), multiple_results=True))
