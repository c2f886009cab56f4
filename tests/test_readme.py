"""The code in the README runs as it stands, and the README is short."""

import pathlib

import jax
import jax.numpy as jnp
import jax.tree_util as jtu

from website.blocks import run


README = pathlib.Path(__file__).parents[1] / "README.md"


def test_the_example_runs():
    # As for its readers.
    with jax.enable_x64(False), jax.numpy_dtype_promotion("standard"):
        names = run(README.read_text(), str(README))
    assert names["value"] > 0
    assert all(jnp.all(jnp.isfinite(leaf)) for leaf in jtu.tree_leaves(names["gradient"]))


def test_it_is_read_in_a_minute():
    assert len(README.read_text().splitlines()) <= 120
