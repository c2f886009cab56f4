"""Limits of spectral norms, and penalties on parameters."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from taynode.lab.training.parameter_penalties import half_squared_norms, half_squares
from taynode.lab.training.spectral import with_limited_norms
from taynode.models import ContinuousFlow, NeuralODEClassifier, TimeConv


def test_norms_are_limited_in_the_vector_field_and_nowhere_else():
    model = NeuralODEClassifier(5, 3, 2, key=jr.key(0))
    layers = lambda model: model.vector_field.layers
    first = layers(model)[0].weight
    most = 0.5 * float(jnp.linalg.norm(first, 2))
    limited = with_limited_norms(model, most)
    found = layers(limited)[0].weight
    np.testing.assert_allclose(np.linalg.norm(found, 2), most, rtol=1e-12)
    np.testing.assert_allclose(found, 0.5 * first, rtol=1e-12)
    for one, other in zip(layers(model), layers(limited), strict=True):
        np.testing.assert_array_equal(one.bias, other.bias)
    np.testing.assert_array_equal(limited.head.weight, model.head.weight)
    same = with_limited_norms(model, 1e3)
    np.testing.assert_array_equal(layers(same)[0].weight, first)


def test_a_field_without_matrices_is_refused():
    model = ContinuousFlow(TimeConv((1, 2, 1), key=jr.key(0)), (4, 4, 1))
    with pytest.raises(ValueError, match="the vector field has none"):
        with_limited_norms(model, 1.0)
    with pytest.raises(ValueError, match="the vector field has none"):
        half_squared_norms(model)


def test_penalties_on_parameters_are_those_of_numpy_and_so_are_their_gradients():
    model: Any = NeuralODEClassifier(5, 3, 2, key=jr.key(0))
    matrices = [np.asarray(layer.weight) for layer in model.vector_field.layers]
    norms = [np.linalg.norm(x, 2) for x in matrices]
    value, gradient = eqx.filter_value_and_grad(half_squared_norms)(model)
    np.testing.assert_allclose(value, 0.5 * np.sum(np.square(norms)), rtol=1e-12)
    for layer, x, norm in zip(gradient.vector_field.layers, matrices, norms, strict=True):
        u, _, v = np.linalg.svd(x)
        np.testing.assert_allclose(layer.weight, norm * np.outer(u[:, 0], v[0]), atol=1e-10)
    assert not gradient.head.weight.any()
    value, gradient = eqx.filter_value_and_grad(half_squares)(model)
    every = [np.asarray(x) for layer in (*model.vector_field.layers, model.head) for x in
             (layer.weight, layer.bias)]  # fmt: skip
    np.testing.assert_allclose(value, 0.5 * sum(np.sum(x**2) for x in every), rtol=1e-12)
    np.testing.assert_array_equal(gradient.head.weight, model.head.weight)
