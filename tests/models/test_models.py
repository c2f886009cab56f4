"""Models: sizes and initial values of the paper, and what they compute."""

import math

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit

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


# One program instead of one for each operation.
evaluate = eqx.filter_jit(lambda field, t, y: field(t, jnp.asarray(y)))


def in_numpy(tree):
    return jtu.tree_map(np.asarray, eqx.filter(tree, eqx.is_array))


def shapes_of(make, *args, **options):
    """A model of which only shapes are known: nothing is compiled to draw its weights."""
    return eqx.filter_eval_shape(lambda key: make(*args, **options, key=key), KEY)


def num_parameters(model):
    return sum(math.prod(x.shape) for x in jtu.tree_leaves(model) if hasattr(x, "shape"))


def test_classifier_has_the_size_of_the_papers():
    model = shapes_of(NeuralODEClassifier, 784, 100, 10)
    assert num_parameters(model.vector_field) == 158_568
    assert num_parameters(model) == 158_568 + 7_850


def test_fields_of_flows_have_the_sizes_of_the_papers():
    sizes = (43, 860, 860, 43)
    assert num_parameters(shapes_of(ConcatSquashMLP, sizes)) == 820_612
    convolutions = shapes_of(TimeConv, (1, 64, 64, 64, 1), zero_last=True)
    assert num_parameters(convolutions) == 76_810


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
    first, second = in_numpy(field.layers)
    y, t = np.array([0.3, -1.0, 2.0]), 0.7
    hidden = expit(y) @ first.weight[1:] + t * first.weight[0] + first.bias
    expected = expit(hidden) @ second.weight[1:] + t * second.weight[0] + second.bias
    np.testing.assert_allclose(evaluate(field, t, y), expected, rtol=1e-12)


def test_concat_squash_layer():
    field = ConcatSquashMLP((3, 3), key=KEY)
    (layer,), (gate,), (shift,) = in_numpy((field.layers, field.gates, field.shifts))
    y, t = np.array([0.3, -1.0, 2.0]), 0.7
    opened = expit(gate.weight[0] * t + gate.bias)
    expected = (y @ layer.weight + layer.bias) * opened + shift * t
    np.testing.assert_allclose(evaluate(field, t, y), expected, rtol=1e-12)


def test_convolution_has_time_as_a_channel():
    field = TimeConv((1, 2, 1), key=KEY)
    image = np.random.default_rng(0).normal(size=(5, 5, 1))
    assert np.ptp([evaluate(field, t, image) for t in (0.0, 0.5)], axis=0).max() > 1e-3
    zero = TimeConv((1, 2, 1), zero_last=True, key=KEY)
    assert not np.any(evaluate(zero, 0.5, image))


def test_time_is_a_channel_of_each_convolution():
    field = TimeConv((1, 2, 3, 1), jnp.tanh, key=KEY)
    t, image = 0.7, np.random.default_rng(0).normal(size=(2, 5, 4, 1))
    expected = image
    for i, (kernel, bias) in enumerate(zip(*in_numpy((field.kernels, field.biases)), strict=True)):
        hidden = np.tanh(expected) if i else expected
        hidden = np.concatenate([np.full((*hidden.shape[:-1], 1), t), hidden], axis=-1)
        # Each window of 3 by 3 pixels, with zeros around the image.
        padded = np.pad(hidden, [(0, 0), (1, 1), (1, 1), (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        expected = bias + np.einsum("bhwikl,klio->bhwo", windows, kernel)
    np.testing.assert_allclose(evaluate(field, t, image), expected, rtol=1e-5, atol=1e-6)


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
    y = np.random.default_rng(0).normal(size=(2, 3, *shape))
    each = [[evaluate(field, 0.3, y) for y in row] for row in y]
    np.testing.assert_allclose(evaluate(field, 0.3, y), each, rtol=1e-10, atol=1e-12)


def test_classifier_against_scipy():
    model = NeuralODEClassifier(6, 4, 3, key=KEY)
    x = np.random.default_rng(0).normal(size=(2, 2, 3))
    solve = Solve(stepsize_controller=dfx.PIDController(rtol=1e-10, atol=1e-10))
    logits, solution = eqx.filter_jit(lambda x: model(x, solve))(x)
    assert solution.stats["nfe"] > 0
    slope = lambda t, y: np.asarray(evaluate(model.vector_field, jnp.asarray(t), y))
    head = in_numpy(model.head)
    for row, image in zip(logits, x, strict=True):
        end = solve_ivp(slope, (0.0, 1.0), image.ravel(), rtol=1e-10, atol=1e-10).y[:, -1]
        np.testing.assert_allclose(row, expit(end) @ head.weight + head.bias, atol=1e-7)


def test_single_precision_stays_single_though_double_is_enabled():
    # BUG, fixed: times were Python's numbers, which are double if that is enabled, and diffrax
    # converts the state to the precision of time.
    cast = lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x
    model = jtu.tree_map(cast, ToyFlow(key=KEY))
    out, solution = eqx.filter_eval_shape(lambda x: model(x), jnp.ones((2, 1), jnp.float32))
    assert out.dtype == solution.ts.dtype == jnp.float32


def test_a_state_of_integers_is_named():
    with pytest.raises(TypeError, match="`y0` must have arrays of floating-point numbers"):
        Solve()(lambda t, y, args: y, jnp.arange(3))


def test_zeros_that_only_the_model_sees_change_nothing_and_others_do():
    plain, larger = (NeuralODEClassifier(5, 3, 2, augment=n, key=KEY) for n in (0, 4))
    x = jr.normal(KEY, (2, 5))
    assert plain.initial_state(x).shape == (2, 5)
    np.testing.assert_array_equal(larger.initial_state(x), jnp.pad(x, ((0, 0), (0, 4))))
    # Weights of the plain model, and zeros where the new dimensions enter.
    pad = lambda a, b: jnp.pad(a, [(0, n - m) for m, n in zip(a.shape, b.shape, strict=True)])
    arrays, structure = jtu.tree_flatten(larger)
    same = structure.unflatten(map(pad, jtu.tree_leaves(plain), arrays))
    logits = lambda model: model(x, Solve(solver=dfx.Euler(), num_steps=3))[0]
    np.testing.assert_allclose(logits(same), logits(plain), rtol=1e-12)
    assert abs(logits(larger) - logits(plain)).max() > 1e-3
