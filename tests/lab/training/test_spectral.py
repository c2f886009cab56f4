"""Limits of spectral norms."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

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
