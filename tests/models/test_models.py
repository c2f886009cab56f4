"""Models: sizes and initial values of the paper, and what they compute."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from taynode.models import (
    ConcatSquashMLP,
    NeuralODEClassifier,
    paper_dense,
    Solve,
    TimeConv,
    TimeMLP,
    ToyFlow,
)


KEY = jr.key(0)


def num_parameters(model):
    return sum(x.size for x in jtu.tree_leaves(eqx.filter(model, eqx.is_inexact_array)))


def test_classifier_has_the_size_of_the_papers():
    model = NeuralODEClassifier(784, 100, 10, key=KEY)
    assert num_parameters(model.vector_field) == 158_568
    assert num_parameters(model) == 158_568 + 7_850


def test_fields_of_flows_have_the_sizes_of_the_papers():
    sizes = (43, 860, 860, 43)
    assert num_parameters(ConcatSquashMLP(sizes, key=KEY)) == 820_612
    assert num_parameters(TimeConv((1, 64, 64, 64, 1), zero_last=True, key=KEY)) == 76_810


def test_initial_weights_are_truncated_normal_over_the_root_of_the_inputs():
    layer = paper_dense(1000, 200, key=KEY)
    weights = np.asarray(layer.weight) * 1000**0.5
    assert np.abs(weights).max() <= 2
    # The standard deviation of a normal distribution that is cut off at two of its own.
    assert weights.std() == pytest.approx(0.8796, rel=0.01)
    assert weights.mean() == pytest.approx(0.0, abs=0.01)
    assert not layer.bias.any()


def test_perceptron_is_that_of_the_paper():
    field = TimeMLP((3, 5, 3), jax.nn.sigmoid, activate_input=True, key=KEY)
    first, second = field.layers
    y, t = jnp.array([0.3, -1.0, 2.0]), jnp.array(0.7)
    hidden = jax.nn.sigmoid(y) @ first.weight[1:] + t * first.weight[0] + first.bias
    expected = jax.nn.sigmoid(hidden) @ second.weight[1:] + t * second.weight[0] + second.bias
    np.testing.assert_allclose(field(t, y), expected, rtol=1e-12)


def test_concat_squash_layer():
    field = ConcatSquashMLP((3, 3), key=KEY)
    (layer,), (gate,), (shift,) = field.layers, field.gates, field.shifts
    y, t = jnp.array([0.3, -1.0, 2.0]), jnp.array(0.7)
    opened = jax.nn.sigmoid(gate.weight[0] * t + gate.bias)
    expected = (y @ layer.weight + layer.bias) * opened + shift * t
    np.testing.assert_allclose(field(t, y), expected, rtol=1e-12)


def test_convolution_has_time_as_a_channel():
    field = TimeConv((1, 2, 1), key=KEY)
    image = jr.normal(KEY, (5, 5, 1))
    changed = field(jnp.array(0.5), image) - field(jnp.array(0.0), image)
    assert jnp.abs(changed).max() > 1e-3
    assert not TimeConv((1, 2, 1), zero_last=True, key=KEY)(jnp.array(0.5), image).any()


def test_time_is_a_channel_of_each_convolution():
    field = TimeConv((1, 2, 3, 1), jnp.tanh, key=KEY)
    t, image = jnp.array(0.7), jr.normal(KEY, (2, 5, 4, 1))
    expected = image
    for i, (kernel, bias) in enumerate(zip(field.kernels, field.biases, strict=True)):
        hidden = jnp.tanh(expected) if i else expected
        time = jnp.broadcast_to(t, (*hidden.shape[:-1], 1))
        expected = bias + jax.lax.conv_general_dilated(
            jnp.concatenate([time, hidden], axis=-1),
            kernel,
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
    np.testing.assert_allclose(field(t, image), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("field", "shape"),
    [
        (TimeMLP((3, 4, 3), key=KEY), (3,)),
        (ConcatSquashMLP((3, 4, 3), key=KEY), (3,)),
        (TimeConv((1, 2, 1), key=KEY), (4, 4, 1)),
    ],
    ids=["TimeMLP", "ConcatSquashMLP", "TimeConv"],
)
def test_batches_of_any_shape(field, shape):
    y = jr.normal(KEY, (2, 3, *shape))
    t = jnp.array(0.3)
    each = jax.vmap(jax.vmap(lambda y: field(t, y)))(y)
    np.testing.assert_allclose(field(t, y), each, rtol=1e-10, atol=1e-12)


def test_classifier_against_scipy():
    model = NeuralODEClassifier(6, 4, 3, key=KEY)
    x = jr.normal(KEY, (2, 2, 3))
    tight = dfx.PIDController(rtol=1e-10, atol=1e-10)
    logits, solution = model(x, Solve(stepsize_controller=tight))
    assert solution.stats["nfe"] > 0
    for row, image in zip(logits, x, strict=True):
        end = solve_ivp(
            lambda t, y: np.asarray(model.vector_field(jnp.asarray(t), jnp.asarray(y))),
            (0.0, 1.0),
            np.asarray(image).ravel(),
            rtol=1e-10,
            atol=1e-10,
        ).y[:, -1]
        np.testing.assert_allclose(row, model.head(jax.nn.sigmoid(end)), atol=1e-7)


def test_single_precision_stays_single_though_double_is_enabled():
    # BUG, fixed: times were Python's numbers, which are double if that is enabled, and diffrax
    # converts the state to the precision of time.
    cast = lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x
    model = jtu.tree_map(cast, ToyFlow(key=KEY))
    out, solution = model(jnp.ones((2, 1), jnp.float32))
    assert out.dtype == solution.ts.dtype == jnp.float32
