"""Vector fields with time as an input."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PRNGKeyArray

from .._types import Args, RealScalarLike
from .convolution import convolve


class Dense(eqx.Module):
    """An affine map of the last axis, for batches of any shape.

    **Arguments:**

    - `weight`, `bias`: of shapes `(in, out)` and `(out,)`.
    """

    weight: Any
    bias: Any

    def __call__(self, x: Any) -> Any:
        """The image of the last axis of `x`."""
        return x @ self.weight + self.bias


def paper_dense(in_size: int, out_size: int, *, key: PRNGKeyArray) -> Dense:
    """Initialized as in the paper's code: truncated normal over the root of the inputs, and 0."""
    weight = jr.truncated_normal(key, -2.0, 2.0, (in_size, out_size)) / in_size**0.5
    return Dense(weight, jnp.zeros(out_size))


def glorot_dense(in_size: int, out_size: int, *, key: PRNGKeyArray) -> Dense:
    """Glorot-normal weights and biases of standard deviation 0.01, as in the paper's toy."""
    weight_key, bias_key = jr.split(key)
    scale = (2 / (in_size + out_size)) ** 0.5
    weight = scale * jr.normal(weight_key, (in_size, out_size))
    return Dense(weight, 0.01 * jr.normal(bias_key, (out_size,)))


class TimeMLP(eqx.Module):
    """A multilayer perceptron with time as one more input of each layer.

    **Arguments:**

    - `sizes`: of all layers, the state's size first and last.
    - `activation`: between layers.
    - `activate_input`: also before the first layer, as in the paper's classifier.
    - `dense`: makes a layer, as `paper_dense` or `glorot_dense` do.
    - `key`: a random key for the weights.
    """

    layers: list[Dense]
    activation: Callable[[Any], Any] = eqx.field(static=True)
    activate_input: bool = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Callable[[Any], Any] = jax.nn.sigmoid,
        *,
        activate_input: bool = False,
        dense: Callable[..., Dense] = paper_dense,
        key: PRNGKeyArray,
    ):
        pairs = list(itertools.pairwise(sizes))
        keys = jr.split(key, len(pairs))
        self.layers = [dense(m + 1, n, key=k) for (m, n), k in zip(pairs, keys, strict=True)]
        self.activation, self.activate_input = activation, activate_input

    def __call__(self, t: RealScalarLike, y: Any, args: Args = None) -> Any:
        """The slope of a state, or of a batch of them along leading axes."""
        del args
        for i, layer in enumerate(self.layers):
            hidden = self.activation(y) if i or self.activate_input else y
            time = jnp.broadcast_to(t, (*y.shape[:-1], 1)).astype(y.dtype)
            y = layer(jnp.concatenate([time, hidden], axis=-1))
        return y


class ConcatSquashMLP(eqx.Module):
    """A multilayer perceptron whose layers are gated and shifted by time.

    Each layer is (W x + b) sigmoid(g t + c) + s t, as in FFJORD.

    **Arguments:** as for `TimeMLP`.
    """

    layers: list[Dense]
    gates: list[Dense]
    shifts: list[Any]
    activation: Callable[[Any], Any] = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Callable[[Any], Any] = jax.nn.softplus,
        *,
        dense: Callable[..., Dense] = paper_dense,
        key: PRNGKeyArray,
    ):
        self.layers, self.gates, self.shifts = [], [], []
        keys = jr.split(key, len(sizes) - 1)
        for (m, n), k in zip(itertools.pairwise(sizes), keys, strict=True):
            layer_key, gate_key, shift_key = jr.split(k, 3)
            self.layers.append(dense(m, n, key=layer_key))
            self.gates.append(dense(1, n, key=gate_key))
            self.shifts.append(dense(1, n, key=shift_key).weight[0])
        self.activation = activation

    def __call__(self, t: RealScalarLike, y: Any, args: Args = None) -> Any:
        """The slope of a state, or of a batch of them along leading axes."""
        del args
        parts = list(zip(self.layers, self.gates, self.shifts, strict=True))
        for i, (layer, gate, shift) in enumerate(parts):
            time = jnp.broadcast_to(t, (1,)).astype(y.dtype)
            y = layer(y) * jax.nn.sigmoid(gate(time)) + shift * time
            if i + 1 < len(parts):
                y = self.activation(y)
        return y


class TimeConv(eqx.Module):
    """Convolutions with time as one more channel of each layer.

    Images are `(height, width, channels)`.

    **Arguments:**

    - `channels`: of all layers, those of the state first and last.
    - `kernel_size`: odd; the image keeps its size.
    - `activation`: between layers.
    - `zero_last`: begin with a vector field of zero.
    - `key`: a random key for the weights.
    """

    kernels: list[Any]
    biases: list[Any]
    activation: Callable[[Any], Any] = eqx.field(static=True)

    def __init__(
        self,
        channels: Sequence[int],
        activation: Callable[[Any], Any] = jax.nn.softplus,
        *,
        kernel_size: int = 3,
        zero_last: bool = False,
        key: PRNGKeyArray,
    ):
        pairs = list(itertools.pairwise(channels))
        keys = jr.split(key, len(pairs))
        fan = kernel_size**2
        self.kernels = [
            jr.truncated_normal(k, -2.0, 2.0, (kernel_size, kernel_size, m + 1, n))
            / (fan * (m + 1)) ** 0.5
            for (m, n), k in zip(pairs, keys, strict=True)
        ]
        if zero_last:
            self.kernels[-1] = jnp.zeros_like(self.kernels[-1])
        self.biases = [jnp.zeros(n) for _, n in pairs]
        self.activation = activation

    def __call__(self, t: RealScalarLike, y: Any, args: Args = None) -> Any:
        """The slope of an image, or of a batch of them along leading axes."""
        del args
        batch = y.reshape(-1, *y.shape[-3:])
        one = jnp.ones((1, *batch.shape[1:-1], 1), y.dtype)
        time = jnp.asarray(t, y.dtype)
        for i, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            hidden = self.activation(batch) if i else batch
            margins = [n // 2 for n in kernel.shape[:2]]
            # Time is the same in every pixel of every image, so its channel is done only once.
            of_time = convolve(one, kernel[:, :, :1], margins)
            batch = convolve(hidden, kernel[:, :, 1:], margins) + of_time * time + bias
        return batch.reshape(y.shape)
