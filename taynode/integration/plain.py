"""The plain system inside a larger one."""

import jax.tree_util as jtu
from jaxtyping import PyTree


def plain(tree: PyTree) -> PyTree:
    """Replace each part of a larger system by its plain part: its attribute `plain_part`, if any.

    It applies to states, error estimates, dense output, vector fields and their cotangents.
    """
    larger = lambda x: hasattr(x, "plain_part")
    return jtu.tree_map(lambda x: x.plain_part if larger(x) else x, tree, is_leaf=larger)
