"""The plain system inside a larger one."""

from typing import Any

import jax.tree_util as jtu


def plain(tree: Any) -> Any:
    """Any pytree of states, terms or both, as it would be if there were no penalty.

    It turns what a solver or an adjoint knows of the larger system into what it would know of the
    plain one: states, error estimates, dense output, cotangents of the vector field.
    """
    larger = lambda x: hasattr(x, "plain_part")
    return jtu.tree_map(lambda x: x.plain_part if larger(x) else x, tree, is_leaf=larger)
