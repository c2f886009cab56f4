"""Values inside of `jax.shard_map`, which differ from device to device.

There, the type of an array tells the axes of the mesh along which it varies, and each value that a
loop carries must keep its type. Here all values of a loop vary along all axes that occur.
"""

from typing import Any

import equinox as eqx
import jax
import jax.tree_util as jtu
from jaxtyping import PyTree


def varying_axes(tree: PyTree) -> tuple[str, ...]:
    """The axes along which some array varies. Outside of `jax.shard_map` there are none."""
    axes = {axis for x in jtu.tree_leaves(tree) if eqx.is_array(x) for axis in _axes(x)}
    return tuple(sorted(axes))


def varying(tree: PyTree, axes: tuple[str, ...]) -> PyTree:
    """Let all arrays vary along these axes, too."""

    def vary(x: Any) -> Any:
        if not eqx.is_array(x):
            return x
        missing = tuple(axis for axis in axes if axis not in _axes(x))
        return jax.lax.pcast(x, missing, to="varying") if missing else x

    return jtu.tree_map(vary, tree) if axes else tree


def _axes(x: Any) -> frozenset[str]:
    # `vma` in jax 0.7 to 0.9.
    kind = jax.typeof(x)
    return kind.manual_axis_type.varying if hasattr(kind, "manual_axis_type") else kind.vma
