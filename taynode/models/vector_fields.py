"""Vector fields made of layers."""

import itertools
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from .._types import Args, RealScalarLike
from .convolution import convolve


Activation = Callable[[Array], Array]
# States lie along the last axis. Any number of axes before it are those of a batch.
States = Float[Array, "*batch size"]
Images = Float[Array, "*batch height width channels"]


class Dense(eqx.Module):
    """An affine map of the last axis, for batches of any shape."""

    weight: Float[Array, "in out"]
    bias: Float[Array, " out"]

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        """Map the last axis of `x`."""
        return x @ self.weight + self.bias


def with_zeros(x: States, count: int) -> Float[Array, "*batch larger"]:
    """Append zeros to states, which gives paths more room.

    Reference: Dupont, Doucet and Teh, Augmented Neural ODEs, NeurIPS 2019.
    """
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, count)]) if count else x


def paper_dense(in_size: int, out_size: int, *, key: PRNGKeyArray) -> Dense:
    """A layer as in the paper's code: truncated normal weights over sqrt(in), and zero biases."""
    weight = jr.truncated_normal(key, -2.0, 2.0, (in_size, out_size)) / in_size**0.5
    return Dense(weight, jnp.zeros(out_size))


def glorot_dense(in_size: int, out_size: int, *, key: PRNGKeyArray) -> Dense:
    """A layer with Glorot-normal weights, and biases of standard deviation 0.01."""
    weight_key, bias_key = jr.split(key)
    scale = (2 / (in_size + out_size)) ** 0.5
    weight = scale * jr.normal(weight_key, (in_size, out_size))
    return Dense(weight, 0.01 * jr.normal(bias_key, (out_size,)))


class TimeMLP(eqx.Module):
    """A multilayer perceptron with time as one more input of each layer.

    **Arguments:**

    - `sizes`: the sizes of all layers, with the size of the state first and last.
    - `activation`: the nonlinearity between layers.
    - `activate_input`: whether to apply it before the first layer, too, as in the paper's
        classifier.
    - `dense`: a function that makes a layer, such as `paper_dense` or `glorot_dense`.
    - `key`: a random key for the weights.
    """

    layers: list[Dense]
    activation: Activation = eqx.field(static=True)
    activate_input: bool = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Activation = jax.nn.sigmoid,
        *,
        activate_input: bool = False,
        dense: Callable[..., Dense] = paper_dense,
        key: PRNGKeyArray,
    ):
        pairs = list(itertools.pairwise(sizes))
        keys = jr.split(key, len(pairs))
        self.layers = [dense(m + 1, n, key=k) for (m, n), k in zip(pairs, keys, strict=True)]
        self.activation, self.activate_input = activation, activate_input

    def __call__(self, t: RealScalarLike, y: States, args: Args = None) -> States:
        """Compute dy/dt."""
        del args
        for i, layer in enumerate(self.layers):
            hidden = self.activation(y) if i or self.activate_input else y
            time = jnp.broadcast_to(t, (*y.shape[:-1], 1)).astype(y.dtype)
            y = layer(jnp.concatenate([time, hidden], axis=-1))
        return y


class AutonomousMLP(eqx.Module):
    """A multilayer perceptron of the state alone, with a tanh before each layer.

    **Arguments:**

    - `sizes`: the sizes of all layers, with the size of the state first and last.
    - `first`: what is applied to the state before the first layer, instead of a tanh; `None` for
        nothing.
    - `dense`: a function that makes a layer, such as `paper_dense` or `glorot_dense`.
    - `key`: a random key for the weights.
    """

    layers: list[Dense]
    first: Activation | None = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        first: Activation | None = jnp.tanh,
        dense: Callable[..., Dense] = paper_dense,
        key: PRNGKeyArray,
    ):
        pairs = list(itertools.pairwise(sizes))
        keys = jr.split(key, len(pairs))
        self.layers = [dense(m, n, key=k) for (m, n), k in zip(pairs, keys, strict=True)]
        self.first = first

    def __call__(self, t: RealScalarLike, y: States, args: Args = None) -> States:
        """Compute dy/dt."""
        del t, args
        y = y if self.first is None else self.first(y)
        for i, layer in enumerate(self.layers):
            y = layer(jnp.tanh(y) if i else y)
        return y


class ConcatSquashMLP(eqx.Module):
    """A multilayer perceptron in which time gates and shifts each layer.

    Each layer is (W x + b) sigmoid(g t + c) + s t, as in FFJORD.

    **Arguments:** as for `TimeMLP`.
    """

    layers: list[Dense]
    gates: list[Dense]
    shifts: list[Float[Array, " out"]]
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Activation = jax.nn.softplus,
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

    def __call__(self, t: RealScalarLike, y: States, args: Args = None) -> States:
        """Compute dy/dt."""
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

    **Arguments:**

    - `channels`: the channels of all layers, with those of the state first and last.
    - `activation`: the nonlinearity between layers.
    - `kernel_size`: the size of the kernels. It is odd, so that images keep their size.
    - `zero_last`: whether the last layer starts with zeros, and thus the vector field, too.
    - `key`: a random key for the weights.
    """

    kernels: list[Float[Array, "height width in out"]]
    biases: list[Float[Array, " out"]]
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        channels: Sequence[int],
        activation: Activation = jax.nn.softplus,
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

    def __call__(self, t: RealScalarLike, y: Images, args: Args = None) -> Images:
        """Compute dy/dt."""
        del args
        batch = y.reshape(-1, *y.shape[-3:])
        one = jnp.ones((1, *batch.shape[1:-1], 1), y.dtype)
        time = jnp.asarray(t, y.dtype)
        for i, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            hidden = self.activation(batch) if i else batch
            margins = [n // 2 for n in kernel.shape[:2]]
            # Time is the same in every pixel of every image, so one image with one channel of
            # ones is convolved.
            of_time = convolve(one, kernel[:, :, :1], margins)
            batch = convolve(hidden, kernel[:, :, 1:], margins) + of_time * time + bias
        return batch.reshape(y.shape)
