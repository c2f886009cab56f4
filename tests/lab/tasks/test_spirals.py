"""Spirals: the equation of one sample on the page is that of a batch in training."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

import taynode as tn
from taynode import lab
from taynode.lab.cli import main


def test_the_field_of_one_sample_is_a_row_of_that_of_a_batch():
    task = lab.find_task("spirals")
    task.scale = "smoke"
    in_double = lambda x: np.asarray(x[:3], float) if np.issubdtype(x.dtype, np.floating) else x[:3]
    batch = jtu.tree_map(in_double, task.load().test)
    model = task.model(jr.key(0))

    @eqx.filter_jit
    def both(model, batch):
        y0, controls = task.initial_state(model, batch), task.arguments(batch)
        one = task.vector_field(model)
        each = jax.vmap(lambda y, control: one(0.3, y, control))(y0, controls)
        return each, model.vector_field(jnp.array(0.3), y0, tn.PerRow(controls))

    each, together = both(model, batch)
    assert each.shape == (3, 8)
    np.testing.assert_allclose(each, together, rtol=1e-12)


@pytest.mark.slow
def test_command(tmp_path, capsys):
    run = tmp_path / "run"
    command = ["train", "spirals", "--scale", "smoke", "--regularizer", "r2", "--weight", "1e-9"]
    with jax.numpy_dtype_promotion("standard"), pytest.raises(SystemExit) as exit_:
        main([*command, "--out", str(run)])
    assert not exit_.value.code
    with np.load(run / "samples.npz") as paths:
        assert paths["path_states"].shape[1:] == (101, 8)
        assert np.all(np.isfinite(paths["path_derivative"]))
    with pytest.raises(SystemExit) as exit_:
        main(["advise", str(run)])
    assert exit_.value.code
    assert "arguments of each sample" in "".join(capsys.readouterr())
