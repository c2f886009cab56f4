"""Data-parallel training: one group of a batch for each device, each solved with its own steps.

A joint solve of a batch that is sharded over devices exchanges its error norm in each step, and all
gradients of parameters in each step of the reverse pass. So here each device solves its rows alone,
inside of `jax.shard_map`, and gradients are reduced once, after all solves.
"""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import PRNGKeyArray, PyTree


GROUPS = "groups"
# What has an axis of rows.
ARRAYS = (jax.Array, np.ndarray)


def group_mesh(devices: list[Any] | None = None) -> Mesh:
    """A mesh with a single axis; of all devices of all processes by default."""
    return Mesh(np.array(jax.devices() if devices is None else devices), (GROUPS,))


def grouped(function: Callable, mesh: Mesh | None = None) -> Callable:
    """Apply a function to groups of rows, each on a device of its own.

    ```python
    predict = tn.grouped(lambda model, xs: jax.vmap(model)(xs))
    ys = eqx.filter_jit(predict)(model, xs)     # as jax.vmap(model)(xs)
    ```

    Inside of it, no device waits for another one, unless `function` says so. Under
    `jax.vmap` of a sharded batch, all solves would make their steps together.

    **Arguments:**

    - `function`: a function `(model, batch, *args)`, or `(model, batch, *args, key=key)` for random
        numbers. Its results have rows along their first axis, one or more for each group.
    - `mesh`: the devices; all of them by default.

    **Returns:**

    A function with the same arguments, for use inside of `jax.jit`. The arrays of `batch` have rows
    along their first axis, as many for each device. All else is the same for all groups, but each
    group has a `key` of its own.
    """

    def apply(
        model: PyTree, batch: PyTree, *args: PyTree, key: PRNGKeyArray | None = None
    ) -> PyTree:
        def local(inputs: _Inputs, random: Mapping[str, Any], axes: Any) -> PyTree:
            del axes
            return function(*inputs, **random)

        return _on_groups(local, mesh, (model, batch, *args), key, shared_first=False)

    return apply


def grouped_value_and_grad(
    loss_fn: Callable, mesh: Mesh | None = None, *, has_aux: bool = False
) -> Callable:
    """As `equinox.filter_value_and_grad`, for a batch whose groups are on devices of their own.

    ```python
    def loss_fn(model, batch, *, key):
        # `solve` calls `tn.diffeqsolve`.
        sol = solve(batch[0], regularizer=tn.TotalDerivative(order=3), key=key)
        loss = jnp.mean((sol.ys[-1] - batch[1]) ** 2)
        return loss + 0.01 * sol.stats["penalty"], sol.stats["nfe"]

    gradient = tn.grouped_value_and_grad(loss_fn, has_aux=True)

    @eqx.filter_jit
    def step(model, batch, key):
        (loss, nfe), grads = gradient(model, batch, key=key)   # nfe of each group
        return grads
    ```

    Each group is solved jointly, with its own step sizes and random numbers. Inside of a solve no
    device waits for another one. Losses and gradients are means over groups, which are computed
    once, at the end: those of the whole batch, if its loss is a mean over rows.

    `diffrax.RecursiveCheckpointAdjoint` does not work inside of `jax.shard_map`. The default
    adjoint does, and so do `diffrax.DirectAdjoint` and `diffrax.BacksolveAdjoint`.

    **Arguments:**

    - `loss_fn`: a function `(model, batch, *args)`, or `(model, batch, *args, key=key)` for random
        numbers, of the rows of a group. It returns its loss or, with `has_aux`, a pair of its loss
        and any pytree of arrays.
    - `mesh`: the devices; all of them by default.
    - `has_aux`: whether `loss_fn` returns a pair.

    **Returns:**

    A function with the same arguments, for use inside of `jax.jit`. It returns the loss, or a pair
    of the loss and the arrays of all groups along a new first axis, and the gradient in `model`.
    The arrays of `batch` have rows along their first axis, as many for each device. All else is the
    same for all groups, but each group has a `key` of its own.
    """
    gradient = eqx.filter_value_and_grad(loss_fn, has_aux=has_aux)

    def apply(
        model: PyTree, batch: PyTree, *args: PyTree, key: PRNGKeyArray | None = None
    ) -> tuple[Any, PyTree]:
        def local(inputs: _Inputs, random: Mapping[str, Any], axes: Any) -> Any:
            value, grads = gradient(*inputs, **random)
            loss, aux = value if has_aux else (value, None)
            aux = jtu.tree_map(lambda x: jnp.asarray(x)[None], aux)
            return jax.lax.pmean((loss, grads), axes), aux

        (loss, grads), aux = _on_groups(local, mesh, (model, batch, *args), key, shared_first=True)
        return ((loss, aux) if has_aux else loss), grads

    return apply


_Inputs = tuple[Any, ...]


def _on_groups(
    local: Callable,
    mesh: Mesh | None,
    inputs: _Inputs,
    key: PRNGKeyArray | None,
    *,
    shared_first: bool,
) -> Any:
    """Call `local(inputs, random, axes)` with the rows of each group.

    With `shared_first`, it returns a pair, of what all groups have in common and of rows.
    """
    mesh = group_mesh() if mesh is None else mesh
    check_rows(inputs[1], mesh.size)
    arrays, rest = eqx.partition(inputs, lambda x: isinstance(x, ARRAYS))
    shared, rows = PartitionSpec(), PartitionSpec(mesh.axis_names)

    def on_one(arrays: _Inputs, key: PRNGKeyArray | None) -> Any:
        random = {}
        if key is not None:
            random["key"] = jr.fold_in(key, jax.lax.axis_index(mesh.axis_names))
        return local(eqx.combine(arrays, rest), random, mesh.axis_names)

    specs = tuple(rows if i == 1 else shared for i in range(len(inputs)))
    run = jax.shard_map(
        on_one,
        mesh=mesh,
        in_specs=(specs, shared),
        out_specs=(shared, rows) if shared_first else rows,
        # Otherwise each constant inside of a solve would have to be marked as one that varies,
        # which equinox and diffrax do not do.
        check_vma=False,
    )
    if AxisType.Explicit in mesh.axis_types:
        # The types of arrays have their sharding, which `jax.shard_map` does not change by itself.
        place = lambda x, spec: jax.reshard(x, NamedSharding(mesh, spec))
        pairs = zip(arrays, specs, strict=True)
        arrays = tuple(jtu.tree_map(lambda x, s=spec: place(x, s), tree) for tree, spec in pairs)
        key = None if key is None else place(key, shared)
    return run(arrays, key)


def check_rows(batch: PyTree, num_groups: int) -> None:
    """Raise an error unless the rows of a batch can be divided among so many groups."""
    shapes = [x.shape for x in jtu.tree_leaves(batch) if isinstance(x, ARRAYS)]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            "All arrays of `batch` must have its rows along their first axis, got arrays of the "
            f"shapes {', '.join(map(str, shapes)) or '(none)'}."
        )
    if (num_rows := shapes[0][0]) % num_groups or not num_rows:
        few = "fewer than" if num_rows < num_groups else "which is not a multiple of"
        raise ValueError(
            f"`batch` has {num_rows} rows, {few} the number of devices, {num_groups}. Pass a "
            "`mesh` of fewer devices, or another batch."
        )
