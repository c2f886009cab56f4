"""Random programs, built of the engine's rules, against nested `jvp`."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import taynode as tn


RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 3)) / 2

# Each maps R^3 to R^3 and keeps values of moderate size, so that programs of any length are tame.
UNARY = {
    "affine": lambda x: W @ x + 0.3,
    "abs": jnp.abs,
    "arcsinh": jnp.arcsinh,
    "arctan": jnp.arctan,
    "branch": lambda x: lax.cond(x[0] > 0.1, jnp.sin, jax.nn.softplus, x),
    "bump": lambda x: jnp.exp(-x * x),
    "clip": lambda x: jnp.clip(x, -0.7, 0.9),
    "cumsum": lambda x: jnp.cumsum(x) / 3,
    "erf": jax.scipy.special.erf,
    "gather": lambda x: x[jnp.array([2, 0, 1])],
    "gelu": jax.nn.gelu,
    "gradient": jax.grad(lambda x: jnp.sum(jnp.sin(W @ x) * x)),
    "log": lambda x: jnp.log1p(x * x),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.cos(W @ x), x),
    "power": lambda x: (1 + x * x) ** -0.7,
    "ratio": lambda x: x / (2 + x[::-1] ** 2),
    "relu": jax.nn.relu,
    "remat": jax.checkpoint(lambda x: jnp.tanh(x) * x / 2),
    "sigmoid": jax.nn.sigmoid,
    "softmax": jax.nn.softmax,
    "solve": lambda x: jnp.linalg.solve(jnp.outer(x, x) + 2 * jnp.eye(3), x),
    "sort": jnp.sort,
    "sqrt": lambda x: jnp.sqrt(1 + x * x),
    "stop": lambda x: x * lax.stop_gradient(jnp.cos(x)),
    "tanh": jnp.tanh,
    "update": lambda x: x.at[1].set(jnp.sin(x[0])),
    "vmapped": jax.vmap(lambda x: jnp.where(x > 0, jnp.sin(x), x / 2)),
    "whiled": lambda x: lax.while_loop(lambda x: jnp.sum(x * x) > 0.5, lambda x: x / 2 + 0.01, x),
}
BINARY = {
    "add": lambda x, y: (x + y) / 2,
    "atan2": lambda x, y: jnp.arctan2(x, 1 + y * y),
    "logaddexp": lambda x, y: jnp.logaddexp(x, y) / 2,
    "max": jnp.maximum,
    "min": jnp.minimum,
    "mul": lambda x, y: x * y,
    "norm": lambda x, y: x / jnp.linalg.norm(jnp.append(y, 1.0)),
    "scan": lambda x, y: lax.scan(lambda c, b: (jnp.tanh(c * b + y[0]), c[0]), x, y)[1],
    "select": lambda x, y: jnp.where(x > y, x, jnp.sin(y)),
}


@st.composite
def programs(draw, max_length=7):
    """A list of steps; each applies an operation to earlier results, the last one preferred."""
    steps = []
    for i in range(draw(st.integers(1, max_length))):
        name = draw(st.sampled_from(sorted(UNARY) + sorted(BINARY)))
        operands = [i] if name in UNARY else [i, draw(st.integers(0, i))]
        steps.append((name, operands))
    return steps


def run(steps, x):
    results = [x]
    for name, operands in steps:
        fun = UNARY.get(name) or BINARY[name]
        results.append(fun(*(results[i] for i in operands)))
    return results[-1]


def nested(field, t, y, order):
    """The derivatives of the solution by nesting `jvp`."""
    fun = rate = lambda t, y: field(t, y, None)
    derivatives = [rate(t, y)]
    for _ in range(order - 1):
        fun = lambda t, y, f=fun: jax.jvp(f, (t, y), (jnp.ones_like(t), rate(t, y)))[1]
        derivatives.append(fun(t, y))
    return derivatives


def check(examples, order):
    """Compare all examples `(steps, point)`, compiled as one program."""

    def evaluate(t, points):
        results = []
        for (steps, _), y in zip(examples, points, strict=True):
            field = lambda t, y, args, steps=steps: run(steps, y * (1 + t))
            got = tn.solution_derivatives(field, t, y, order=order)
            results.append((got, nested(field, t, y, order)))
        return results

    results = jax.jit(evaluate)(jnp.array(0.1), [jnp.asarray(point) for _, point in examples])
    for (steps, point), (got, expected) in zip(examples, results, strict=True):
        for k, (a, b) in enumerate(zip(got, expected, strict=True), start=1):
            scale = max(1.0, float(jnp.max(jnp.abs(b))))
            error = float(jnp.max(jnp.abs(a - b)))
            assert error <= 1e-10 * scale, f"order {k} of {steps} at {point}: {a} instead of {b}"


points = st.lists(st.floats(-1.5, 1.5), min_size=3, max_size=3).map(
    # Away from exact ties between entries, where a permutation decides the derivative.
    lambda xs: [x + 1e-3 * (i + 1) * np.sqrt(2) for i, x in enumerate(xs)]
)


@hypothesis.settings(max_examples=1)
@hypothesis.given(st.lists(st.tuples(programs(max_length=4), points), min_size=5, max_size=5))
def test_short_programs(examples):
    check(examples, order=3)


@pytest.mark.slow
@hypothesis.settings(max_examples=300)
@hypothesis.given(programs(), points)
def test_long_programs(steps, point):
    check([(steps, point)], order=4)


NAMES = sorted(UNARY) + sorted(BINARY)


@pytest.mark.parametrize("names", [NAMES[i::5] for i in range(5)], ids="-".join)
def test_each_building_block(names):
    blocks = [[("tanh", [0]), (name, [1] if name in UNARY else [1, 0])] for name in names]
    check([(steps, [0.4, -0.9, 0.7]) for steps in blocks], order=3)
