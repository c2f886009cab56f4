"""Tasks: the paper's settings, and the paper's numbers at initialization."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

from taynode.lab import AbstractTask, find_task, TASKS
from taynode.lab.config import (
    ConfigError,
    from_dict,
    OPTIMIZERS,
    PARAMETER_PENALTIES,
    REGULARIZER_NAMES,
    RegularizerConfig,
    SCALES,
    SolveConfig,
    to_dict,
    TrainConfig,
)
from taynode.lab.data import DataError, oscillators
from taynode.lab.tasks.mnist_flow import bits_per_dim, from_logits, to_logits
from taynode.lab.training.build import make_parameter_penalty, make_quadrature, make_regularizer
from taynode.lab.training.evaluate import Evaluator
from taynode.lab.training.running import prepare
from taynode.models import ContinuousFlow, Solve
from taynode.quadrature import Sampled
from taynode.registry import ADJOINTS, QUADRATURES, quadratures_of, REGULARIZERS, SOLVERS


@pytest.mark.parametrize(
    "names",
    [SOLVERS, ADJOINTS, REGULARIZERS, QUADRATURES, OPTIMIZERS, PARAMETER_PENALTIES],
)
def test_every_name_stands_for_something(names):
    assert all(callable(names.find(name)) for name in names)


@pytest.mark.parametrize("name", REGULARIZER_NAMES)
def test_every_regularizer_can_be_made(name):
    penalized = RegularizerConfig(name, 1.0, quadrature=quadratures_of(name)[-1])
    config = TrainConfig(regularizer=penalized)
    assert (make_regularizer(config, lambda y: y) is None) == (name not in REGULARIZERS)
    assert (make_parameter_penalty(config) is None) == (name not in PARAMETER_PENALTIES)


def test_power_means_are_of_random_times_only():
    tail = RegularizerConfig("r3", 1.0, power=4.0)
    assert make_quadrature(TrainConfig(regularizer=tail)) == Sampled(batch_axis=0, power=4.0)
    with pytest.raises(ConfigError, match="`power` is for the quadrature sampled, not augmented"):
        RegularizerConfig("r3", 1.0, power=4.0, quadrature="augmented")
    with pytest.raises(ConfigError, match="`power` must be at least 1"):
        RegularizerConfig("r3", 1.0, power=0.5)


def test_zeros_are_appended_where_that_makes_sense():
    cast = lambda x: np.asarray(x[:2], float if x.dtype == np.float32 else x.dtype)
    for name, size in (("digits", 64), ("oscillators", 6)):
        task = find_task(name)
        config = dataclasses.replace(task.defaults("smoke"), augment=3)
        prepare(task, config)
        data = task.load()
        batch = jtu.tree_map(cast, data.test)
        shape = eqx.filter_eval_shape(
            lambda key, task=task, batch=batch: task.initial_state(task.model(key), batch),
            jr.key(0),
        ).shape
        assert shape == (2, size + 3)
    flow = find_task("density2d")
    with pytest.raises(ConfigError, match="`augment` is for classifiers and latent ODEs"):
        prepare(flow, dataclasses.replace(flow.defaults("smoke"), augment=3))
    with pytest.raises(ConfigError, match="`augment` must not be negative"):
        TrainConfig(augment=-1)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("scale", SCALES)
def test_settings_of_every_task(name, scale):
    task = find_task(name)
    assert isinstance(task, AbstractTask)
    settings = task.defaults(scale)
    assert (settings.task, settings.scale) == (name, scale)
    assert from_dict(TrainConfig, to_dict(settings)) == settings


SLOW = [
    pytest.param(name, marks=pytest.mark.slow) for name in ("density2d", "oscillators", "spirals")
]


@pytest.mark.parametrize("name", ["toy", "digits", *SLOW])
def test_tasks_without_download(name):
    task = find_task(name)
    train, test, _ = task.load()
    model = task.model(jr.key(0))
    cast = lambda x: np.asarray(x, float) if np.issubdtype(x.dtype, np.floating) else x
    batch = jtu.tree_map(lambda x: cast(x[:4]), test)
    outcome = eqx.filter_jit(task.loss)(model, batch, Solve(), jr.key(1))
    assert np.isfinite(outcome.loss)
    assert outcome.loss.shape == ()
    assert len(jtu.tree_leaves(train)[0]) > len(jtu.tree_leaves(test)[0]) >= 200


def test_settings_of_the_paper_for_mnist():
    settings = find_task("mnist").defaults("paper")
    optimizer = settings.optimizer
    assert (settings.epochs, settings.batch_size, settings.precision) == (160, 100, "float64")
    assert (optimizer.name, optimizer.momentum, optimizer.learning_rate) == ("sgd", 0.9, 0.1)
    assert optimizer.boundaries == (60, 100, 140)
    tolerance = SolveConfig(rtol=1.4e-8, atol=1.4e-8)
    assert settings.evaluation == tolerance
    assert settings.training == tolerance


@pytest.mark.slow
def test_settings_of_the_paper_for_flows():
    settings = find_task("miniboone").defaults("paper")
    assert (settings.epochs, settings.batch_size, settings.training.rtol) == (500, 1000, 1.4e-8)
    # Steps, of which an epoch of 29,556 rows has 29.
    assert [round(30 * x) for x in settings.optimizer.boundaries] == [9000, 12750]
    settings = find_task("mnist-flow").defaults("paper")
    assert (settings.epochs, settings.batch_size, settings.training.rtol) == (100, 200, 1e-5)
    assert (settings.optimizer.warmup, settings.optimizer.boundaries) == (1000, (80,))
    for name, count in (("miniboone", 820_612), ("mnist-flow", 76_810)):
        task = find_task(name)
        task.scale = "paper"
        leaves = jtu.tree_leaves(eqx.filter(task.model(jr.key(0)), eqx.is_inexact_array))
        assert sum(x.size for x in leaves) == count


def test_settings_of_the_paper_for_physionet():
    settings = find_task("physionet").defaults("paper")
    optimizer = settings.optimizer
    assert (settings.epochs, settings.batch_size, settings.precision) == (100, 50, "float64")
    assert (optimizer.name, optimizer.learning_rate, optimizer.decay) == ("adamax", 0.01, 0.999)
    tolerance = SolveConfig(rtol=1.4e-8, atol=1.4e-8)
    assert settings.evaluation == tolerance
    assert settings.training == tolerance
    # Fewer epochs and patients, but as exact.
    smaller = find_task("physionet").defaults("laptop")
    assert (smaller.training, smaller.precision) == (settings.training, "float64")


def test_images_as_logits_and_back():
    images = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
    z, change = to_logits(images, jr.key(0), float)
    back = from_logits(z)
    np.testing.assert_allclose(np.floor(back * 256), images)
    # The change of volume is the product of slopes, here by finite differences of the inverse.
    step = 1e-6
    slopes = (from_logits(z + step) - from_logits(z - step)) / (2 * step)
    np.testing.assert_allclose(change, [-np.log(slopes).sum()], rtol=1e-6)
    # Uniform noise on 256 levels, and nothing learned, is 8 bits.
    np.testing.assert_allclose(bits_per_dim(np.zeros(1), 16 * 16), [8.0])


@pytest.fixture(scope="module")
def mnist():
    try:
        return find_task("mnist").load()
    except DataError:
        pytest.skip("MNIST is neither in TAYNODE_DATA nor in the cache")


@pytest.mark.slow
def test_mnist_at_initialization_is_that_of_the_paper(mnist):
    """Evaluations, K and R_2 of the untrained model, as measured with the released code."""
    task = find_task("mnist")
    model = task.model(jr.key(0))
    data = jtu.tree_map(lambda x: x[:50], mnist.test)
    data = data._replace(inputs=np.asarray(data.inputs, float))
    for tolerance, nfe in ((1.4e-8, 26), (1e-5, 20)):
        evaluator = Evaluator(task, SolveConfig(rtol=tolerance, atol=tolerance))
        report = evaluator.report(model, data, split="test")
        assert report["nfe"] == report["nfe_max"] == nfe
        assert report["nfe_std"] == 0
    penalties = evaluator.penalties(model, data, split="test")
    assert penalties["kinetic"] == pytest.approx(0.21, rel=0.1)
    assert penalties["r2"] == pytest.approx(7.95e-3, rel=0.1)


@pytest.mark.slow
def test_flow_of_images_at_initialization_is_that_of_the_paper(mnist):
    """Nothing moves yet: a standard normal density of logits, and steps that grow tenfold."""
    task = find_task("mnist-flow")
    task.scale = "paper"
    images = task.load().test[:500]
    # The last layer is zero at first, so nothing else matters.
    model = ContinuousFlow(lambda t, z, args: jnp.zeros_like(z), (28, 28, 1))
    outcome = eqx.filter_jit(task.loss)(model, images, Solve(), jr.key(1))
    assert outcome.loss == pytest.approx(27.9, abs=0.1)
    assert outcome.solution.stats["nfe"] == 44


def test_train_and_test_oscillators_share_their_times():
    """They were once drawn apart, each with times of its own, of which only one was used."""
    task = find_task("oscillators")
    data = task.load()
    series = oscillators(len(data.train.values) + len(data.test.values), seed=0)
    np.testing.assert_array_equal(task.times, series.times)
    np.testing.assert_array_equal(
        np.concatenate([data.train.values, data.test.values]), series.values
    )
    assert not np.array_equal(data.train.values[: len(data.test.values)], data.test.values)
