"""The vector fields that are measured."""

import jax
import jax.numpy as jnp
import jax.random as jr


def paper_field():
    """The paper's MNIST field, 784-100-784: sigmoid, time as one more input of each layer."""
    return _with_state((784, 100, 784), jax.nn.sigmoid, activate_input=True)


def small_field():
    """A field as in two-dimensional examples, 2-64-64-2 with tanh."""
    return _with_state((2, 64, 64, 2), jnp.tanh, activate_input=False)


MODELS = {"784-100-784": paper_field, "2-64-64-2": small_field}
BATCH = 100


def _with_state(sizes, activation, *, activate_input):
    field, params = make_field(sizes, activation, activate_input=activate_input)
    return field, params, jr.normal(jr.key(1), (BATCH, sizes[0]))


def make_field(sizes, activation, *, activate_input):
    """A multilayer perceptron with time as one more input of each layer, and its parameters."""
    keys = jr.split(jr.key(0), len(sizes))
    params = [
        (jr.normal(key, (m + 1, n)) / m**0.5, jnp.zeros(n))
        for key, m, n in zip(keys, sizes[:-1], sizes[1:], strict=False)
    ]

    def field(t, y, params):
        for i, (weight, bias) in enumerate(params):
            hidden = activation(y) if i or activate_input else y
            time = jnp.broadcast_to(t, (*y.shape[:-1], 1)).astype(y.dtype)
            y = jnp.concatenate([hidden, time], axis=-1) @ weight + bias
        return y

    return field, params
