"""Equinox's layers and transformations, fields as neural ODEs have them, and derivatives inside."""

import inspect
from functools import partial

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax import lax

from .tensors import fixed, like, table


W = 0.7 * fixed(3, 3)


def abstract(make, *args, **options):
    """A module with shapes for its weights."""
    if "key" in inspect.signature(make).parameters:
        options["key"] = jax.random.key(0)
    return eqx.filter_eval_shape(make, *args, **options)


def weights(module):
    return [x for x in jtu.tree_leaves(module) if isinstance(x, jax.ShapeDtypeStruct)]


def filled(module, arrays):
    arrays = iter(arrays)
    leaves, structure = jtu.tree_flatten(module)
    leaves = [next(arrays) if isinstance(x, jax.ShapeDtypeStruct) else x for x in leaves]
    return jtu.tree_unflatten(structure, leaves)


def layer(make, *args, **options):
    """A layer with constant weights by NumPy: the same at any setting of JAX, and none zero."""
    module = abstract(make, *args, **options)
    arrays = [0.6 * fixed(*x.shape, seed=i) for i, x in enumerate(weights(module))]
    return lambda *inputs: filled(module, map(jnp.asarray, arrays))(*inputs)


def trained(what, make, *args, point, **options):
    """The row of a layer whose weights vary as well."""
    module = abstract(make, *args, **options)

    def fun(x, *arrays):
        return filled(module, arrays)(x)

    return f"{what}_of_weights", fun, [point, *(x.shape for x in weights(module))]


nn = eqx.nn


def mlp(activation):
    return layer(nn.MLP, 3, 2, 4, 2, activation=activation)


def weight_norm(key):
    return nn.WeightNorm(nn.Linear(3, 2, key=key))


def sequential(key):
    layers = [nn.Linear(3, 4, key=key), nn.Lambda(jnp.tanh), nn.Dropout(inference=True)]
    return nn.Sequential([*layers, nn.LayerNorm(4), nn.Linear(4, 2, key=key)])


def attention(x):
    mask = np.tril(np.ones((3, 3), bool))
    return layer(nn.MultiheadAttention, 2, 4)(x, x, jnp.sin(x), mask)


def batch_norm(x, inference):
    """Normalizes over the batch, or in inference by the statistics of a first call."""
    norm, state = nn.make_with_state(nn.BatchNorm)(2, "batch", mode="batch", dtype=x.dtype)
    call = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    y, state = call(x, state)
    if not inference:
        return y
    return jax.vmap(nn.inference_mode(norm), (0, None), (0, None), axis_name="batch")(x, state)[0]


def spectral_norm(x, w):
    """Of a weight that varies; the power iterations' vectors are constant."""
    linear = eqx.tree_at(lambda m: m.weight, nn.Linear(3, 3, False, key=jax.random.key(0)), w)
    constant = eqx.tree_at(lambda m: m.weight, linear, jnp.asarray(W))
    norm, state = nn.make_with_state(nn.SpectralNorm)(constant, "weight", key=jax.random.key(0))
    return eqx.tree_at(lambda m: m.layer, norm, linear)(x, state)[0]


LAYERS = [
    ("linear", layer(nn.Linear, 3, 2), [(3,)]),
    ("mlp_relu", layer(nn.MLP, 3, 2, 4, 2), [(3,)]),
    ("mlp_softplus", mlp(jax.nn.softplus), [(3,)]),
    ("mlp_tanh", mlp(jnp.tanh), [(3,)]),
    ("mlp_gelu", mlp(jax.nn.gelu), [(3,)]),
    ("mlp_elu", mlp(jax.nn.elu), [(3,)]),
    trained("linear", nn.Linear, 3, 2, point=(3,)),
    trained("mlp", nn.MLP, 2, 2, 3, 1, jnp.tanh, point=(2,)),
    ("conv1d", layer(nn.Conv1d, 2, 2, 3, padding=1), [(2, 4)]),
    ("conv1d_strided_grouped", layer(nn.Conv1d, 2, 4, 3, stride=2, groups=2), [(2, 6)]),
    ("conv2d", layer(nn.Conv2d, 1, 2, 2), [(1, 3, 3)]),
    ("conv2d_circular", layer(nn.Conv2d, 1, 2, 3, padding=1, padding_mode="CIRCULAR"), [(1, 3, 3)]),
    trained("conv1d", nn.Conv1d, 2, 2, 2, point=(2, 4)),
    ("conv_transpose1d", layer(nn.ConvTranspose1d, 2, 2, 3, stride=2), [(2, 3)]),
    ("conv_transpose2d", layer(nn.ConvTranspose2d, 1, 2, 2), [(1, 3, 3)]),
    ("avg_pool1d", layer(nn.AvgPool1d, 2, 2), [(2, 6)]),
    ("avg_pool2d", lambda x: nn.AvgPool2d(2, padding=1)(x**2), [(1, 3, 3)]),
    ("max_pool1d", layer(nn.MaxPool1d, 3, 2, padding=1), [(2, 6)]),
    ("max_pool2d", lambda x: nn.MaxPool2d(2)(jnp.sin(x)), [(1, 3, 3)]),
    ("max_pool2d_ceil", layer(nn.MaxPool2d, 2, 2, use_ceil=True), [(1, 3, 3)]),
    (
        "max_pool1d_of_relu",
        lambda x: nn.MaxPool1d(2)(jax.nn.relu(x)),
        [np.array([[-1.0, -1.0, 0.5, 2.0]])],
    ),
    ("adaptive_avg_pool1d", lambda x: nn.AdaptiveAvgPool1d(3)(x**2), [(1, 7)]),
    ("adaptive_max_pool2d", lambda x: nn.AdaptiveMaxPool2d(2)(x**2), [(1, 3, 4)]),
    ("layer_norm", layer(nn.LayerNorm, 4), [(4,)]),
    trained("layer_norm", nn.LayerNorm, 4, point=(4,)),
    ("group_norm", layer(nn.GroupNorm, 2, 4), [(4, 3)]),
    ("rms_norm", layer(nn.RMSNorm, 4), [(4,)]),
    ("batch_norm", partial(batch_norm, inference=False), [(4, 2)]),
    ("batch_norm_inference", partial(batch_norm, inference=True), [(4, 2)]),
    ("weight_norm", layer(weight_norm), [(3,)]),
    trained("weight_norm", weight_norm, point=(3,)),
    ("spectral_norm", spectral_norm, [(3,), W]),
    ("gru_cell", layer(nn.GRUCell, 2, 3), [(2,), (3,)]),
    ("lstm_cell", lambda x, h, c: layer(nn.LSTMCell, 2, 3)(x, (h, c)), [(2,), (3,), (3,)]),
    ("attention", attention, [(3, 4)]),
    ("rotary_embedding", lambda x: nn.RotaryPositionalEmbedding(4, dtype=x.dtype)(x), [(3, 4)]),
    ("embedding_of_constant", lambda x: x**2 * layer(nn.Embedding, 4, 3)(jnp.array(2)), [(3,)]),
    ("dropout_inference", lambda x: nn.Dropout(0.5, inference=True)(x**2), [(3,)]),
    ("prelu", layer(nn.PReLU), [(4,)]),
    trained("prelu", nn.PReLU, point=(4,)),
    ("sequential", layer(sequential), [(3,)]),
]


@eqx.filter_custom_jvp
def scaled(x, *, power):
    return x**power


@scaled.def_jvp
def _scaled_jvp(primals, tangents, *, power):
    """Half the true derivative, so that a rule that is ignored shows."""
    return scaled(*primals, power=power), 0.5 * power * primals[0] ** (power - 1) * tangents[0]


def of_module(x):
    module = filled(abstract(nn.Linear, 3, 2), map(jnp.asarray, (W[:2], W[2, :2])))
    return eqx.filter_jit(lambda m, y: m(y) * jnp.sum(x))(module, x)


FILTERED = [
    ("filter_jit", eqx.filter_jit(mlp(jnp.tanh)), [(3,)]),
    ("filter_jit_of_module", of_module, [(3,)]),
    ("filter_checkpoint", eqx.filter_checkpoint(mlp(jnp.tanh)), [(3,)]),
    ("filter_vmap", eqx.filter_vmap(mlp(jnp.tanh)), [(2, 3)]),
    ("filter_custom_jvp", lambda x: scaled(jnp.sin(x), power=3), [(3,)]),
    ("filter_grad", eqx.filter_grad(lambda x: jnp.sum(mlp(jnp.tanh)(x))), [(3,)]),
    ("filter_jvp", lambda x: eqx.filter_jvp(mlp(jnp.tanh), (x,), (x**2,)), [(3,)]),
]


def with_time(t, x):
    return jnp.concatenate([x, jnp.broadcast_to(t, (1, *x.shape[1:]))])


def mnist(t, x, w1, b1, w2, b2):
    """The field of the MNIST classifier that higher-order regularization was introduced with."""
    h = w1 @ with_time(t, jax.nn.sigmoid(x)) + b1
    return w2 @ with_time(t, jax.nn.sigmoid(h)) + b2


def concat_squash(t, x):
    dense, gate, bias = (0.6 * fixed(3, n, seed=n) for n in (3, 1, 2))
    return (dense @ x) * jax.nn.sigmoid(gate[:, 0] * t + gate[:, 0]) + bias[:, 0] * t


def squashed(t, x):
    return concat_squash(t, jnp.tanh(concat_squash(t, x)))


def convolutional(t, x):
    first, second = layer(nn.Conv2d, 2, 2, 3, padding=1), layer(nn.Conv2d, 3, 1, 3, padding=1)
    return second(with_time(t, jax.nn.softplus(first(with_time(t, x)))))


def cnf_exact(t, x):
    return squashed(t, x), jnp.trace(jax.jacfwd(squashed, argnums=1)(t, x))


def cnf_hutchinson(t, x):
    y, pull = jax.vjp(partial(squashed, t), x)
    return y, pull(jnp.asarray(fixed(3)))[0] @ fixed(3)


def euler(adjoint):
    term = diffrax.ODETerm(lambda t, y, w: jnp.tanh(w @ y) + t)
    options = {"t0": 0.0, "t1": 0.75, "dt0": 0.25, "max_steps": 4, "adjoint": adjoint}
    return lambda y, w: diffrax.diffeqsolve(term, diffrax.Euler(), y0=y, args=w, **options).ys


def euler_by_hand(y, w):
    for i in range(3):
        y = y + 0.25 * (jnp.tanh(w @ y) + 0.25 * i)
    return y[None]


by_hand = {
    "reference": like(euler_by_hand),
    "why": "jvp of the default adjoint's custom_vjp raises",
}

FIELDS = [
    ("mnist", mnist, [(), (3,), (2, 4), (2,), (3, 3), (3,)]),
    ("concat_squash", squashed, [(), (3,)]),
    ("convolutional", convolutional, [(), (1, 3, 3)]),
    ("cnf_exact", cnf_exact, [(), (3,)]),
    ("cnf_hutchinson", cnf_hutchinson, [(), (3,)]),
    ("euler_direct", euler(diffrax.DirectAdjoint()), [(2,), (2, 2)]),
    ("euler_forward", euler(diffrax.ForwardMode()), [(2,), (2, 2)]),
    ("euler_default", euler(diffrax.RecursiveCheckpointAdjoint()), [(2,), (2, 2)], by_hand),
]


def field(activation):
    return lambda x: W @ activation(W @ x + 0.1)


def hutchinson(activation):
    return lambda x: jax.vjp(field(activation), x)[1](jnp.asarray(fixed(3)))[0] @ fixed(3)


def divergence(activation, jacobian=jax.jacfwd):
    return lambda x: jnp.trace(jacobian(field(activation))(x))


def energy(x):
    return jnp.sum(jnp.tanh(W @ x) ** 2)


def linearized(x):
    y, push = jax.linearize(field(jnp.sin), x)
    return y * push(x) + push(jnp.ones_like(x))


def transposed(x):
    return jax.linear_transpose(lambda v: (W * x) @ v, x)(jnp.sin(x))[0]


def scanned(y):
    return lax.scan(lambda c, v: (jnp.sin(c * v), None), y[0], y)[0]


def branched(y):
    return lax.cond(y[0] < 9, lambda: jnp.prod(y), lambda: jnp.sum(y))


def stopped(x):
    return jnp.sum(x**3 * lax.stop_gradient(jnp.sin(x)))


relu, softplus = jax.nn.relu, jax.nn.softplus

DERIVATIVES = [
    ("jvp", lambda x: jax.jvp(field(jnp.sin), (x,), (x**2,)), [(3,)]),
    ("vjp", lambda x: jax.vjp(field(jnp.tanh), x)[1](x)[0], [(3,)]),
    ("grad", jax.grad(energy), [(3,)]),
    ("value_and_grad", jax.value_and_grad(energy), [(3,)]),
    ("grad_twice", lambda x: jax.grad(lambda y: jax.grad(energy)(y) @ y)(x), [(3,)]),
    ("grad_of_checkpoint", jax.grad(jax.checkpoint(energy)), [(3,)]),
    ("grad_of_scan", jax.grad(scanned), [(3,)]),
    ("grad_of_cond", jax.grad(branched), [(3,)]),
    ("grad_of_stop_gradient", jax.grad(stopped), [(3,)]),
    ("jacfwd", jax.jacfwd(field(jnp.tanh)), [(3,)]),
    ("jacrev", jax.jacrev(field(jnp.tanh)), [(3,)]),
    ("hessian", jax.hessian(lambda x: jnp.sin(x) @ W @ jnp.cos(x)), [(3,)]),
    ("linearize", linearized, [(3,)]),
    ("linear_transpose", transposed, [(3,)]),
    ("hutchinson_tanh", hutchinson(jnp.tanh), [(3,)]),
    ("hutchinson_softplus", hutchinson(softplus), [(3,)]),
    ("hutchinson_relu", lambda x: hutchinson(relu)(x) * field(relu)(x), [(3,)]),
    ("divergence_tanh", divergence(jnp.tanh), [(3,)]),
    ("divergence_softplus", divergence(softplus, jax.jacrev), [(3,)]),
    ("divergence_relu", lambda x: divergence(relu)(x) * field(relu)(x), [(3,)]),
]

CASES = [
    *table("layer", LAYERS),
    *table("equinox", FILTERED),
    *table("field", FIELDS),
    *table("derivative", DERIVATIVES),
]
