"""A trained model comes back without its data, and without running what its files name."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest

from taynode import lab
from taynode.lab.config import ConfigError
from taynode.lab.training.parameters import read_header, write_parameters
from taynode.models import ToyFlow

from ..rows import without_penalties
from .test_loop import cheap
from .tiny_task import Lost, Tiny


class Sized(Tiny):
    """Only the data tells how large the model is."""

    model_needs_data = True

    def load(self):
        self.width = 4
        return super().load()

    def model(self, key):
        return ToyFlow(self.width, key=key)


def same(one, other):
    return all(map(np.array_equal, jtu.tree_leaves(one), jtu.tree_leaves(other)))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The model at the end of a short run."""
    path = tmp_path_factory.mktemp("runs") / "plain"
    models = []
    settings = cheap(Tiny(), epochs=1, num_evaluations=1)
    with without_penalties():
        lab.train(settings, Tiny(), path, on_finish=lambda run, _: models.append(run.final_model))
    return path, models[0]


def test_a_model_is_loaded_without_its_data(plain):
    path, model = plain
    run = lab.load(path, task=Lost())
    assert same(run.model, model)
    assert run.step == 4
    with pytest.raises(AssertionError, match="the data was asked for"):
        _ = run.data


def test_data_is_loaded_once_and_as_the_run_used_it(plain, tmp_path):
    _, model = plain
    file = tmp_path / "model.eqx"
    write_parameters(file, model, cheap(Tiny(), train_samples=32), 4)
    run = lab.load(file, task=Tiny, precision="float64")
    assert run.data is run.data
    assert run.data.train.inputs.shape == (32, 1)
    assert run.data.train.inputs.dtype == jnp.float64


def test_a_model_that_depends_on_the_data_is_loaded_with_it(plain):
    path, model = plain
    assert same(lab.load(path, task=Sized).model, model)


def test_a_model_is_loaded_from_its_parameters(plain, tmp_path):
    path, model = plain
    config = lab.RunDirectory(path).config()
    file = tmp_path / "model.eqx"
    write_parameters(file, model, config, 4)
    assert read_header(file) == (config, 4)
    run = lab.load(file, task=Lost)
    assert same(run.model, model)
    assert (run.config, run.step) == (config, 4)


def test_damaged_parameters_are_refused(plain, tmp_path):
    path, model = plain
    file = tmp_path / "model.eqx"
    write_parameters(file, model, lab.RunDirectory(path).config(), 4)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="is damaged"):
        lab.load(file, task=Tiny)
    file.write_bytes(b"\x93NUMPY" + content)
    with pytest.raises(ConfigError, match="is not a file of parameters"):
        lab.load(file, task=Tiny)


def test_double_precision_has_to_be_switched_on(tmp_path):
    config = dataclasses.replace(cheap(Tiny()), precision="float64")
    lab.RunDirectory(tmp_path).create(config)
    with jax.enable_x64(False), pytest.raises(ConfigError, match="jax_enable_x64"):
        lab.load(tmp_path, task=Tiny)
