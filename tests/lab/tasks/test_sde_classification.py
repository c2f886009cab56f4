"""Images by a neural SDE: how many paths are drawn, and the published sizes."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

from taynode import lab
from taynode.lab.tasks.base import Batch, Unsolved
from taynode.models import Solve


class Recorder:
    """Knows how many paths it was asked for, and is sure that each image is a three."""

    def __call__(self, x, solve, *, num_draws, key):
        self.num_draws = num_draws
        return jnp.zeros((len(x), 10)).at[:, 3].set(20.0), Unsolved({})


@pytest.mark.parametrize("name", ["digits-sde", "mnist-sde"])
def test_one_path_in_training_and_ten_in_evaluations(name):
    task, model = lab.find_task(name), Recorder()
    batch = Batch(np.zeros((4, 8, 8)), np.array([3, 3, 3, 1]))
    found = task.loss(model, batch, Solve(), jr.key(0))
    assert model.num_draws == 10
    np.testing.assert_allclose(found.metrics["error"], 0.25)
    np.testing.assert_allclose(found.loss, 5.0, rtol=1e-6)
    found = task.training_loss(model, batch, Solve(), jr.key(0), 0.0)
    assert model.num_draws == 1
    np.testing.assert_allclose(found.metrics["error"], 0.25)


def test_the_classifier_of_mnist_has_the_published_layers():
    model = eqx.filter_eval_shape(lab.find_task("mnist-sde").model, jr.key(0))
    counts = {
        name: sum(x.size for x in jtu.tree_leaves(part) if hasattr(x, "size"))
        for name, part in {
            "into": model.into,
            "drift": model.sde.drift,
            "diffusion": model.sde.diffusion,
            "head": model.head,
        }.items()
    }
    dense = lambda m, n: (m + 1) * n
    assert counts == {
        "into": dense(784, 32),
        "drift": dense(32, 64) + dense(64, 32),
        "diffusion": dense(32, 32),
        "head": dense(32, 10),
    }
