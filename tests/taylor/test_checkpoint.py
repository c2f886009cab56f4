"""`jax.checkpoint` inside a vector field is kept: the reverse pass computes its body again."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

import taynode as tn
from benchmarks.counting import count_primitives
from taynode.taylor import derivative_of_part


ORDER, NUM_LAYERS, BATCH, WIDTH, HIDDEN = 3, 3, 16, 2, 8
RNG = np.random.default_rng(0)
WEIGHTS = [
    (RNG.normal(size=(WIDTH, HIDDEN)), RNG.normal(size=(HIDDEN, WIDTH))) for _ in range(NUM_LAYERS)
]
Y = RNG.normal(size=(BATCH, WIDTH))


def layer(y, weights):
    first, second = weights
    hidden = checkpoint_name(jnp.tanh(y @ first), "hidden")
    return jnp.sin(hidden @ second)


def unrolled(wrap):
    wrapped = wrap(layer)

    def field(t, y, weights):
        for w in weights:
            y = wrapped(y, w)
        return y * jnp.cos(t)

    return field


def scanned(wrap):
    wrapped = wrap(layer)

    def field(t, y, weights):
        stacked = jtu.tree_map(lambda *x: jnp.stack(x), *weights)
        return jax.lax.scan(lambda y, w: (wrapped(y, w), None), y, stacked)[0] * jnp.cos(t)

    return field


def nested(wrap):
    """A checkpoint inside a checkpoint."""
    return lambda t, y, weights: wrap(ft.partial(unrolled(wrap), t))(y, weights)


def inlined(fun):
    return fun


def penalty(field, order=ORDER):
    def fun(weights, y):
        return jnp.sum(tn.solution_derivatives(field, 0.3, y, weights, order=order)[-1] ** 2)

    return fun


def residuals(fun):
    """The number of floating-point numbers that the forward pass stores for the reverse pass."""
    _, pullback = jax.vjp(fun, WEIGHTS, Y)
    return sum(x.size for x in jtu.tree_leaves(pullback))


def close(a, b):
    jtu.tree_map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12), a, b)


WRAPS = {
    "default": jax.checkpoint,
    "dots": ft.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable),
    "cse": ft.partial(jax.checkpoint, prevent_cse=False),
    "per argument": ft.partial(jax.checkpoint, prevent_cse=(True, False)),
}


@pytest.mark.parametrize(
    ("make", "wrap"),
    [
        *((unrolled, name) for name in WRAPS),
        (scanned, "default"),
        (nested, "default"),
    ],
)
def test_values_and_gradients_are_those_of_the_inlined_field(make, wrap):
    got, expected = (
        jax.jit(jax.value_and_grad(penalty(make(w)), argnums=(0, 1)))(WEIGHTS, Y)
        for w in (WRAPS[wrap], inlined)
    )
    close(got, expected)


@pytest.mark.slow
def test_other_transformations():
    def directional(field):
        gradient = jax.grad(lambda y: penalty(field, order=2)(WEIGHTS, y))
        return lambda y: jax.jvp(gradient, (y,), (jnp.cos(y),))

    ys = jnp.stack([Y, -Y])
    got, expected = (
        jax.jit(jax.vmap(directional(unrolled(w))))(ys) for w in (jax.checkpoint, inlined)
    )
    close(got, expected)


@pytest.mark.parametrize("make", [unrolled, scanned])
def test_the_reverse_pass_stores_coefficients_of_inputs_alone(make):
    """Each layer has `WIDTH` inputs, and each order one coefficient of them."""
    inside = residuals(penalty(make(inlined)))
    kept = residuals(penalty(make(jax.checkpoint)))
    num_weights = sum(x.size for x in jtu.tree_leaves(WEIGHTS))
    # The factor 2 leaves room for the cosine of time and for the last output.
    assert kept <= 2 * ORDER * NUM_LAYERS * BATCH * WIDTH + num_weights
    assert kept < inside / 3


@pytest.mark.slow
def test_a_policy_decides_what_is_stored():
    def stored(policy):
        return residuals(penalty(unrolled(ft.partial(jax.checkpoint, policy=policy))))

    policies = jax.checkpoint_policies
    nothing, everything = stored(None), stored(policies.everything_saveable)
    by_name = stored(policies.save_only_these_names("hidden"))
    assert stored(policies.save_only_these_names("other")) == nothing
    assert nothing + ORDER * NUM_LAYERS * BATCH * HIDDEN <= by_name < everything


def test_prevent_cse_is_passed_on():
    def barriers(prevent_cse):
        wrap = ft.partial(jax.checkpoint, prevent_cse=prevent_cse)
        lowered = jax.jit(jax.grad(penalty(unrolled(wrap)))).lower(WEIGHTS, Y)
        return lowered.as_text().count("optimization_barrier")

    assert barriers(False) == 0
    assert barriers(True) >= ORDER * NUM_LAYERS


def test_a_solve_takes_less_memory():
    """As XLA allocates it: the steps of a solve keep no values of the layers."""

    def loss(field):
        def step(y, weights):
            rate, *_, last = tn.solution_derivatives(field, 0.3, y, weights, order=ORDER)
            return y + 0.1 * rate, jnp.sum(last**2)

        def fun(weights, y):
            return jnp.sum(jax.lax.scan(lambda y, _: step(y, weights), y, length=20)[1])

        return fun

    def memory(wrap):
        compiled = jax.jit(jax.grad(loss(unrolled(wrap)))).lower(WEIGHTS, Y).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert memory(jax.checkpoint) < memory(inlined) / 3


@pytest.mark.parametrize("order", [1, 2, 4])
def test_the_forward_pass_evaluates_the_body_once_per_order(order):
    counts = count_primitives(penalty(unrolled(jax.checkpoint), order), WEIGHTS, Y)
    assert counts["dot_general"] == 2 * NUM_LAYERS * order


def test_the_forward_pass_of_a_gradient_evaluates_the_body_once_without_jit():
    evaluations = []

    def identity(y):
        evaluations.append(1)
        return y

    @jax.custom_jvp
    def counted(y):
        return jax.pure_callback(identity, y, y)

    counted.defjvp(lambda primals, tangents: (counted(*primals), tangents[0]))
    body = jax.checkpoint(lambda y: jnp.sin(counted(y)))

    def last(y):
        return tn.solution_derivatives(lambda t, y, _: body(y), 0.0, y, order=3)[-1]

    _, pullback = jax.vjp(last, Y)
    jax.block_until_ready(jtu.tree_leaves(pullback))
    assert len(evaluations) == 1
    jax.block_until_ready(pullback(Y))
    assert len(evaluations) > 1


def test_outputs_that_are_not_charged_are_not_expanded():
    """Else the divergence of a checkpointed flow would be expanded for nothing."""

    def products(wrap):
        @wrap
        def body(z, weights):
            rate = layer(z, weights)
            return rate, jnp.sum(jnp.tanh(rate @ rate.T))

        def field(t, y, weights):
            return body(y[0], weights)

        def part(z):
            return derivative_of_part(
                field, 0.0, (z, jnp.zeros(())), WEIGHTS[0], order=4, where=lambda y: y[0]
            )

        return count_primitives(part, Y)["dot_general"]

    assert products(jax.checkpoint) == products(inlined)


def test_integers_pass_through():
    def field(wrap):
        body = wrap(lambda y, n: (jnp.sin(y[n]), n + 1))

        def fun(t, y, args):
            rate, n = body(y, jnp.arange(BATCH)[::-1])
            return rate * n[:, None].astype(y.dtype)

        return fun

    def last(wrap):
        return jax.value_and_grad(penalty(field(wrap)), argnums=1)(WEIGHTS, Y)

    close(last(jax.checkpoint), last(inlined))
