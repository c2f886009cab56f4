"""Single rows of a batch that is solved jointly."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import Array, PRNGKeyArray, PyTree

from .._types import Args, Arrays, Rate, RealScalarLike, Y
from ..integration.problem import Problem
from ..regularizers import AbstractRegularizer


HINT = (
    "If `y0` is a single sample, as under `jax.vmap`, leave `batch_axis` out. If it is a batch, "
    "wrap arguments that belong to single rows in `tn.PerRow`, for example "
    "`args=tn.PerRow(condition)`, and read `args.value` in the vector field; see `tn.PerRow`."
)


class PerRow(eqx.Module):
    """Marks a part of `args` that has one entry for each row of a jointly solved batch.

    The vector field receives the marker and reads its `value`:
    ```python
    def vector_field(t, y, args):
        return args["network"](jnp.concatenate([y, args["condition"].value], axis=-1))

    args = {"network": network, "condition": tn.PerRow(condition)}
    ```
    The solve evaluates all rows at once. `tn.Sampled(batch_axis=...)` evaluates a regularizer on
    one row at a time; `value` is then a batch of one, like `y`. All rows share everything else in
    `args`.

    **Arguments:**

    - `value`: an array, or a pytree of arrays.
    - `axis`: the axis along which these arrays have one entry for each row.
    """

    value: PyTree
    axis: int = eqx.field(static=True, default=0)


def check_rows(problem: Problem, axis: int) -> int:
    """Check that the rows of a joint batch can be evaluated one by one, and count them."""
    sizes = set()
    for path, leaf in jtu.tree_leaves_with_path(problem.y0):
        if not -leaf.ndim <= axis < leaf.ndim:
            raise ValueError(
                f"`batch_axis={axis}` does not exist in `y0{jtu.keystr(path)}`, which has shape "
                f"{leaf.shape}. All leaves of a joint batch must have it."
            )
        sizes.add(leaf.shape[axis])
    if len(sizes) != 1:
        raise ValueError(
            f"`batch_axis={axis}` has different sizes in the leaves of `y0`: {sorted(sizes)}."
        )
    num_rows = sizes.pop()
    _check_args(problem.args, num_rows)
    _check_field(problem, axis)
    return num_rows


def row_rates(
    problem: Problem, regularizer: AbstractRegularizer, axis: int, num_rows: int, key: PRNGKeyArray
) -> Callable[[Array, Arrays], Rate]:
    """A function that computes the rates of all rows from their times and states.

    Each row draws its own noise.
    """
    y_axes = jtu.tree_map(lambda y: axis % y.ndim, problem.y0)
    args_axes = _map_marked(problem.args, lambda marked: marked.axis, lambda _: None)

    def rates_of_row(t: RealScalarLike, row: Y, args: Args, key: PRNGKeyArray) -> Rate:
        row = jtu.tree_map(jnp.expand_dims, row, y_axes)
        args = _map_values(args, jnp.expand_dims)
        noise = regularizer.init(row, args, key=key)
        return regularizer.rate(problem.slope_term.vf, t, row, args, noise)[1]

    over_rows = eqx.filter_vmap(rates_of_row, in_axes=(0, y_axes, args_axes, 0))
    keys = jr.split(key, num_rows)
    return lambda times, states: over_rows(times, states, problem.args, keys)


def _check_args(args: Args, num_rows: int) -> None:
    for path, marked in jtu.tree_leaves_with_path(args, is_leaf=_is_marked):
        for inner, leaf in jtu.tree_leaves_with_path(marked) if _is_marked(marked) else ():
            shape = jnp.shape(leaf)
            exists = -len(shape) <= marked.axis < len(shape)
            if not exists or shape[marked.axis] != num_rows:
                raise ValueError(
                    f"`args{jtu.keystr((*path, *inner))}` is inside of a `tn.PerRow`, so its axis "
                    f"{marked.axis} must have one entry for each of the {num_rows} rows of `y0`, "
                    f"got shape {shape}."
                )


def _check_field(problem: Problem, axis: int) -> None:
    """Evaluate the shapes of the vector field on the first row."""
    first = lambda x, axis: jnp.take(x, jnp.array([0]), axis=axis)
    row = jtu.tree_map(lambda y: first(y, axis), problem.y0)
    args = _map_values(problem.args, first)
    try:
        slope = eqx.filter_eval_shape(problem.slope_term.vector_field, problem.t0, row, args)
    except Exception as error:
        error.add_note(f"`batch_axis={axis}` evaluates the vector field on one row. {HINT}")
        raise
    shapes = lambda tree: [jnp.shape(x) for x in jtu.tree_leaves(tree)]
    fits = lambda a, b: jnp.broadcast_shapes(a, b) == b
    if not all(map(fits, shapes(slope), shapes(row))):
        raise ValueError(
            f"`batch_axis={axis}` evaluates the vector field on one row at a time. For a row of "
            f"shapes {shapes(row)} it returns {shapes(slope)}. Does `args` or the vector field "
            f"hold something per row? {HINT}"
        )


def _is_marked(x: Any) -> bool:
    return isinstance(x, PerRow)


def _map_marked(args: Args, marked: Callable[[PerRow], Any], other: Callable[[Any], Any]) -> Any:
    each = lambda x: marked(x) if _is_marked(x) else other(x)
    return jtu.tree_map(each, args, is_leaf=_is_marked)


def _map_values(args: Args, function: Callable[[Any, int], Any]) -> Args:
    """Apply a function of an array and its axis of rows to all arrays in a `PerRow`."""

    def marked(x: PerRow) -> PerRow:
        return PerRow(jtu.tree_map(lambda leaf: function(leaf, x.axis), x.value), x.axis)

    return _map_marked(args, marked, lambda x: x)
