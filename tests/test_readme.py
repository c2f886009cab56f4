"""The code in the README runs as it stands."""

import pathlib
import re

import jax.numpy as jnp
import jax.tree_util as jtu

import taynode as tn


README = pathlib.Path(__file__).parents[1] / "README.md"


def test_the_example_runs():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict = {}
    for code in blocks:
        exec(code, names)
    assert names["value"] > 0
    assert all(jnp.all(jnp.isfinite(leaf)) for leaf in jtu.tree_leaves(names["gradient"]))
    assert issubclass(names["Jerk"], tn.AbstractRegularizer)
