"""Activations of `jax.nn`, at generic points and at kinks, and functions with custom rules."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import mpmath
import numpy as np
from jax import lax, nn

from .dtypes import high_precision, rewritten, tabulate


REAL = [-1.7, -0.6, 0.4, 2.3]
LARGE = [-4.1, -2.2, 3.4, 6.6]
ZERO = [0.0]
ROWS = [[0.3, -1.0, 2.0], [0.9, 0.4, -0.2]]
MASK = np.array([True, False, True, True])

table = partial(tabulate, "activations")
custom = partial(tabulate, "custom_jvp")


def softplus_written_out(x):
    return jnp.maximum(x, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


# Elementwise activations and where, if anywhere, they have a kink other than 0. The one thing of
# `jax.nn` left out here and below is the scaled (block-quantized) products, which want a GPU.
ELEMENTWISE = [
    ("identity", nn.identity, None),
    ("relu", nn.relu, None),
    ("relu6", nn.relu6, [0.0, 6.0]),
    ("sigmoid", nn.sigmoid, None),
    ("tanh", nn.tanh, None),
    ("softplus", nn.softplus, None),
    ("sparse_plus", nn.sparse_plus, [-1.0, 1.0]),
    ("sparse_sigmoid", nn.sparse_sigmoid, [-1.0, 1.0]),
    ("soft_sign", nn.soft_sign, None),
    ("silu", nn.silu, None),
    ("swish", nn.swish, None),
    ("log_sigmoid", nn.log_sigmoid, None),
    ("leaky_relu", nn.leaky_relu, None),
    ("leaky_relu(0.3)", lambda x: nn.leaky_relu(x, 0.3), None),
    ("hard_sigmoid", nn.hard_sigmoid, [-3.0, 3.0]),
    ("hard_silu", nn.hard_silu, [-3.0, 3.0]),
    ("hard_swish", nn.hard_swish, [-3.0, 3.0]),
    ("hard_tanh", nn.hard_tanh, [-1.0, 1.0]),
    ("elu", nn.elu, None),
    ("elu(1.7)", lambda x: nn.elu(x, 1.7), None),
    ("celu", nn.celu, None),
    ("celu(0.6)", lambda x: nn.celu(x, 0.6), None),
    ("selu", nn.selu, None),
    ("gelu_tanh", partial(nn.gelu, approximate=True), None),
    ("gelu_erf", partial(nn.gelu, approximate=False), None),
    ("squareplus", nn.squareplus, None),
    ("squareplus(1)", lambda x: nn.squareplus(x, 1.0), None),
    ("mish", nn.mish, None),
]
SIMPLE = []
for name, fun, kinks in ELEMENTWISE:
    SIMPLE.append((name, fun, {"generic": REAL, "0": ZERO} | ({"kink": kinks} if kinks else {})))
SIMPLE.append(("softplus_written_out", softplus_written_out, {"generic": REAL}))
SIMPLE += [
    (name, fun, {"large": LARGE}) for name, fun, _ in ELEMENTWISE if name in ("hard_silu", "relu6")
]

WHOLE = [
    ("glu", nn.glu, {"generic": REAL, "0": [0.0] * 4}),
    ("glu_axis", partial(nn.glu, axis=0), {"generic": ROWS}),
    ("softmax", nn.softmax, {"generic": REAL, "ties": [0.5] * 3, "far": [3.0, -2.0]}),
    ("softmax_axis", partial(nn.softmax, axis=0), {"generic": ROWS}),
    ("softmax_where", lambda x, m: nn.softmax(x, where=m), {"generic": (REAL, MASK)}),
    ("log_softmax", nn.log_softmax, {"generic": REAL, "ties": [0.5] * 3, "0": [0.0] * 3}),
    ("log_softmax_axes", partial(nn.log_softmax, axis=(0, 1)), {"generic": ROWS}),
    ("logsumexp", nn.logsumexp, {"generic": REAL, "ties": [0.5] * 3, "0": [0.0] * 3}),
    (
        "logsumexp_weights",
        lambda x, b: nn.logsumexp(x, b=b),
        {"generic": (REAL, [0.3, 2.0, 1, 0.5])},
    ),
    ("logsumexp_where", lambda x, m: nn.logsumexp(x, where=m), {"generic": (REAL, MASK)}),
    ("logmeanexp", nn.logmeanexp, {"generic": REAL}),
    ("standardize", nn.standardize, {"generic": REAL}),
    ("standardize_rows", partial(nn.standardize, axis=0, epsilon=0.1), {"generic": ROWS}),
    ("standardize_stable", partial(nn.standardize, **{"algorithm": "stable"}), {"generic": REAL}),
    ("standardize_mean", lambda x, m: nn.standardize(x, mean=m), {"generic": (REAL, [0.3])}),
    (
        "one_hot",
        lambda x, i: jnp.sin(x) * nn.one_hot(i, 4, dtype=x.dtype),
        {"int": (REAL, np.array(2))},
    ),
    (
        "one_hot_argmax",
        lambda x: x * nn.one_hot(jnp.argmax(x), 4, dtype=x.dtype),
        {"generic": REAL},
    ),
    ("log1mexp", nn.log1mexp, {"generic": [0.2, 0.6, 1.9], "log2": [np.log(2.0)], "20": [20.0]}),
    ("normalize", lambda x: x / jnp.linalg.norm(x), {"generic": REAL}),
    ("rms_norm", lambda x: x * lax.rsqrt(jnp.mean(x * x) + 1e-5), {"generic": REAL}),
    ("cross_entropy", lambda x, i: -nn.log_softmax(x)[i], {"int": (REAL, np.array(1))}),
    ("entropy", lambda x: jnp.sum(jsp.entr(nn.softmax(x))), {"generic": REAL}),
]


def attention(q, k, v):
    # JAX's own code promotes implicitly, which strict promotion forbids.
    with jax.numpy_dtype_promotion("standard"):
        return nn.dot_product_attention(q, k, v)


def attention_written_out(q, k, v):
    weights = nn.softmax(jnp.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(2.0))
    return jnp.einsum("bnts,bsnh->btnh", weights, v)


QKV = tuple(np.sin(np.arange(4.0) + 2 * k).reshape(1, 2, 1, 2) for k in range(3))
TWO_LAYERS = ([[0.4, -1.1], [0.7, 0.3], [-0.2, 0.9]], [0.0] * 3, [0.0] * 2)


def between_layers(activation):
    """The activation of a dense layer whose pre-activations are zero."""
    readout = np.array([[0.5, -1.3, 0.8], [0.2, 0.6, -0.7]])
    return lambda w, b, x: readout @ activation(w @ x + b)


DENSE = [
    (f"dense_{name}", between_layers(fun), {"zero": TWO_LAYERS})
    for name, fun, _ in ELEMENTWISE
    if "(" not in name and name not in ("identity", "swish", "hard_swish")
]
DENSE += [
    ("dense_softmax", between_layers(nn.softmax), {"zero": TWO_LAYERS}),
    ("dense_log_softmax", between_layers(nn.log_softmax), {"zero": TWO_LAYERS}),
    ("dense_logsumexp", between_layers(lambda y: nn.logsumexp(y) * y), {"zero": TWO_LAYERS}),
    ("dense_relu_twice", lambda w, b, x: nn.relu(w.T @ nn.relu(w @ x + b)), {"zero": TWO_LAYERS}),
]


def log_of_sigmoid(x):
    return -mpmath.log1p(mpmath.exp(-x))


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


def gelu_exact(x):
    # erfc, not mpmath.ncdf: JAX rounds sqrt(1/2) to float64, and so does the case.
    return x * mpmath.erfc(-x * mpmath.mpf(float(np.sqrt(0.5)))) / 2


# Rows (name, fun, the same with mpmath, points): saturation.
TAILS = [
    ("sigmoid", nn.sigmoid, logistic, (-30.0, 30.0)),
    ("softplus", nn.softplus, lambda x: mpmath.log1p(mpmath.exp(x)), (-30.0, 30.0)),
    ("log_sigmoid", nn.log_sigmoid, log_of_sigmoid, (-30.0, 30.0)),
    ("silu", nn.silu, lambda x: x * logistic(x), (-30.0, 30.0)),
    ("gelu_erf", partial(nn.gelu, approximate=False), gelu_exact, (-8.0, 8.0)),
]


@jax.custom_jvp
def straight_through(x):
    """Rounds, with the derivative of the identity."""
    return jnp.round(x)


straight_through.defjvp(lambda x, dx: (straight_through(*x), dx[0]))


@jax.custom_jvp
def scaled_tangent(x):
    """sin, with a derivative three times too large."""
    return jnp.sin(x)


scaled_tangent.defjvp(lambda x, dx: (scaled_tangent(*x), 3.0 * jnp.cos(x[0]) * dx[0]))


@jax.custom_jvp
def no_derivative(x):
    """exp, with derivative zero."""
    return jnp.exp(x)


no_derivative.defjvp(lambda x, dx: (no_derivative(*x), jnp.zeros_like(dx[0])))


@jax.custom_jvp
def two_outputs(x, y):
    """A pair, whose rule uses one output in the tangent of the other."""
    return {"product": x * y, "sine": jnp.sin(x)}


@two_outputs.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    out = two_outputs(x, y)
    return out, {"product": 2.0 * (x * dy + y * dx), "sine": dx * jnp.cos(x) * out["product"]}


@partial(jax.custom_jvp, nondiff_argnums=(0, 2))
def apply_to_power(f, x, n):
    """f(x)**n; `f` and `n` are not differentiated."""
    return f(x) ** n


@apply_to_power.defjvp
def _(f, n, primals, tangents):
    y, dy = jax.jvp(f, primals, tangents)
    return y**n, 0.5 * n * y ** (n - 1) * dy


@jax.custom_jvp
def nested(x):
    """A custom rule which itself calls functions with custom rules."""
    return nn.relu(scaled_tangent(x)) * straight_through(x)


@nested.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return nested(x), scaled_tangent(x) * dx + straight_through(x) * jnp.cos(x) * dx


@jax.custom_jvp
def gated_tangent(x):
    """The identity, which has no derivative outside the unit interval."""
    return x * 1.0


gated_tangent.defjvps(lambda dx, out, x: jnp.where(jnp.abs(x) < 1.0, dx, 0.0))


@jax.custom_jvp
def with_integer(x, n):
    return x * n.astype(x.dtype)


@with_integer.defjvp
def _(primals, tangents):
    (x, n), (dx, _) = primals, tangents
    return with_integer(x, n), 2.0 * dx * n.astype(x.dtype)


def jit_in_vmap(f):
    return jax.vmap(jax.jit(f))


def in_scan(f):
    return lambda x: lax.scan(lambda c, _: (f(c) + 0.1 * c, c), x, None, length=2)


COUNTS = np.array([3, 0, -2, 1], np.int32)
CUSTOM = [
    ("straight_through", straight_through, {"generic": REAL, "halves": [-0.5, 0.5, 1.5]}),
    (
        "straight_through_of_sin",
        lambda x: straight_through(3.0 * jnp.sin(x)) * x,
        {"generic": REAL},
    ),
    ("scaled_tangent", scaled_tangent, {"generic": REAL, "0": ZERO}),
    ("scaled_tangent_twice", lambda x: scaled_tangent(scaled_tangent(x)), {"generic": REAL}),
    ("no_derivative", lambda x: no_derivative(x) * jnp.sin(x), {"generic": REAL}),
    ("two_outputs", two_outputs, {"generic": (REAL, [0.9, -1.4, -0.3, 1.6])}),
    ("one_of_two_outputs", lambda x: two_outputs(x, x)["sine"], {"generic": REAL}),
    ("nondiff_arguments", lambda x: apply_to_power(jnp.sin, x, 3), {"generic": REAL}),
    ("integer_argument", with_integer, {"generic": (REAL, COUNTS)}),
    ("nested", nested, {"generic": REAL, "0": ZERO}),
    ("gated_tangent", lambda x: jnp.exp(gated_tangent(x)), {"generic": REAL, "1": [1.0]}),
    ("jit_in_vmap", jit_in_vmap(lambda x: scaled_tangent(x) * x), {"generic": REAL}),
    ("nested_jit_in_vmap", jit_in_vmap(nested), {"generic": REAL}),
    ("in_scan", in_scan(scaled_tangent), {"generic": REAL}),
    ("in_cond", lambda x: lax.cond(x[0] < 0.0, scaled_tangent, jnp.cos, x), {"generic": REAL}),
    ("in_checkpoint", jax.checkpoint(scaled_tangent), {"generic": REAL}),
    ("constant_argument", lambda x: x * scaled_tangent(jnp.arange(4.0)), {"generic": REAL}),
]

CASES = table(SIMPLE + WHOLE + DENSE) + custom(CUSTOM)
CASES += table(
    [("dot_product_attention", attention, {"generic": QKV})],
    tolerance=2e-4,
    reference=rewritten(attention_written_out),
    why="its softmax is in single precision whatever the arguments",
)
for name, fun, exact, points in TAILS:
    CASES += table(
        [(name, fun, {f"{x:g}": [x] for x in points})],
        reference=high_precision(exact),
        why="the rule of sigmoid that nested jvp applies cancels in its tail",
    )
