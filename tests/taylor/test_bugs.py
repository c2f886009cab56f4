"""One test a bug, named after it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental.jet import jet as jax_jet

import taynode as tn


X = jnp.array([0.3, -0.7, 1.1])


def exp_rule(k, inputs, outputs, memory):
    (u,), (y,) = inputs, outputs
    return sum(j * u[j] * y[k - j] for j in range(1, k + 1)) / k


def test_mutable_arrays_lost_their_derivative_silently():
    def fun(x):
        ref = jax.new_ref(0.0)
        ref[...] = jnp.sin(x)
        return ref[...] * x

    with pytest.raises(tn.NoDerivativeError, match="mutable arrays"):
        tn.jet(fun, (0.5,), ([1.0],))


def test_rule_of_a_function_that_closes_over_a_tracer_had_zero_gradient():
    def loss(w):
        fun = tn.register_rule(lambda x: w * jnp.exp(x), exp_rule)
        return tn.jet(fun, (0.3,), ([1.0],))[1][0]

    expected = np.exp(0.3)
    for gradient in (jax.grad(loss), jax.jit(jax.grad(loss))):
        assert gradient(2.0) == pytest.approx(expected)
    np.testing.assert_allclose(jax.vmap(loss)(jnp.arange(3.0)), expected * np.arange(3.0))


def test_rule_of_a_function_that_closes_over_something_moving():
    def fun(x):
        return tn.register_rule(lambda y: x * jnp.exp(y), exp_rule)(x)

    with pytest.raises(ValueError, match="Pass this array as an argument"):
        tn.jet(fun, (0.5,), ([1.0],))


def test_rule_that_overwrites_its_memory_read_old_values_inside_scan():
    def rule(k, inputs, outputs, memory):
        memory[0] = memory.get(0, 0.0) + inputs[0][k]
        return memory[0]

    fun = tn.register_rule(jnp.exp, rule)

    def looped(x):
        return lax.scan(lambda c, _: (fun(c), None), x, None, length=1)[0]

    series = ([1.0, 2.0, 6.0],)
    straight = tn.jet(fun, (0.5,), series)[1]
    np.testing.assert_allclose(tn.jet(looped, (0.5,), series)[1], straight)


@pytest.mark.parametrize("fun", [lambda x: x**-12, lambda x: jnp.power(x, -12.0)])
def test_negative_powers_overflowed_in_float32(fun):
    _, (slope,) = tn.jet(fun, (jnp.float32(1e4),), ([jnp.float32(1.0)],))
    assert float(slope) == 0.0
    _, series = tn.jet(fun, (jnp.float32(1.5),), ([jnp.float32(c) for c in (1.0, 0.0, 0.0)],))
    expected = [-12 * 1.5**-13, 156 * 1.5**-14, -2184 * 1.5**-15]
    np.testing.assert_allclose(np.array(series), expected, rtol=1e-5)


def test_gradient_of_a_real_power_at_zero_base_was_nan():
    def slope(x):
        return tn.jet(lambda x: x**2.5, (x,), ([1.0],))[1][0]

    assert jax.grad(slope)(0.0) == 0.0
    with jax.debug_nans(True):
        assert slope(0.0) == 0.0


def test_real_power_of_a_tiny_base_underflowed():
    x = jnp.float32(1e-16)
    _, series = tn.jet(lambda x: x**2.5, (x,), ([jnp.float32(c) for c in (1.0, 0.0, 0.0)],))
    expected = [2.5 * 1e-24, 3.75 * 1e-8, 1.875 * 1e8]
    np.testing.assert_allclose(np.array(series), expected, rtol=1e-4)


@pytest.mark.parametrize("fun", [lambda x: x**0.5, jnp.cbrt])
def test_slope_at_a_branch_point_was_nan_instead_of_infinite(fun):
    assert tn.jet(fun, (0.0,), ([1.0],))[1][0] == jnp.inf


def test_custom_vjp_lost_its_rule_for_the_value():
    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))

    def value(w):
        return jnp.sum(tn.jet(lambda x: clipped(w * x), (X,), ([X],))[0])

    assert jax.grad(value)(2.0) == pytest.approx(0.1 * float(jnp.sum(X)))


def test_custom_vjp_higher_orders_are_those_of_the_body():
    @jax.custom_vjp
    def sine(x):
        return jnp.sin(x)

    sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))
    terms = [X, X**2, X + 1]
    got, expected = (tn.jet(f, (X,), (terms,))[1] for f in (sine, jnp.sin))
    np.testing.assert_allclose(np.array(got), np.array(expected), rtol=1e-13)


@pytest.mark.parametrize(
    "field",
    [
        lambda t, y, args: jax.nn.relu(y),
        lambda t, y, args: jax.nn.gelu(y) * t,
        lambda t, y, args: lax.cond(jnp.sum(y) > 0, jnp.sin, jnp.cos, y),
        lambda t, y, args: jnp.where(y > 0, y, 0.0),
    ],
)
def test_zeros_did_not_know_about_shard_map(field):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
    spec = jax.P("i")

    def last(y):
        return tn.solution_derivatives(field, 0.1, y, order=3)[-1]

    sharded = jax.jit(jax.shard_map(last, mesh=mesh, in_specs=spec, out_specs=spec))
    np.testing.assert_allclose(sharded(X), last(X), rtol=1e-13)


@pytest.mark.parametrize("moves", [True, False])
def test_linear_solve_with_auxiliary_output(moves):
    a = jnp.diag(jnp.array([2.0, 3.0, 4.0])) + 0.1

    def matrix(x):
        return a * jnp.exp(x[0]) if moves else a

    def fun(x):
        m = matrix(x)
        return lax.custom_linear_solve(
            lambda v: m @ v,
            x,
            lambda _, b: (jnp.linalg.solve(m, b), jnp.sum(b)),
            symmetric=True,
            has_aux=True,
        )[0]

    terms = [X, X**2, X + 1]
    got = tn.jet(fun, (X,), (terms,))[1]
    expected = tn.jet(lambda x: jnp.linalg.inv(matrix(x)) @ x, (X,), (terms,))[1]
    np.testing.assert_allclose(np.array(got), np.array(expected), rtol=1e-11)


@pytest.mark.parametrize("constant", [1, 1.0, np.float64(1.0)])
def test_constant_outputs_were_not_arrays(constant):
    derivatives = tn.solution_derivatives(lambda t, y, args: constant, 0.0, 1.0, order=2)
    assert all(isinstance(d, jax.Array) for d in derivatives)
    assert [float(d) for d in derivatives] == [1.0, 0.0]
    primal, series = tn.jet(lambda x: constant, (X,), ([X],))
    assert all(isinstance(leaf, jax.Array) for leaf in (primal, *series))


@pytest.mark.parametrize("returned", [0.0, np.float64(0.0), np.float32(0.0)])
def test_rule_may_return_a_number(returned):
    fun = tn.register_rule(jnp.exp, lambda k, inputs, outputs, memory: returned)
    x = jnp.float32(0.5)
    _, series = tn.jet(lambda x: fun(x) * x, (x,), ([jnp.float32(1.0)] * 2,))
    assert [s.dtype for s in series] == [jnp.float32] * 2


def test_integer_argument_of_a_batched_rule():
    def rule(k, inputs, outputs, memory):
        u, n = inputs
        assert n[1] is None
        return u[k] * n[0].astype(u[k].dtype)

    fun = tn.register_rule(lambda x, n: x * n.astype(x.dtype), rule)
    _, (slope,) = tn.jet(lambda x: jax.vmap(fun)(x, jnp.arange(3)), (X,), ([X],))
    np.testing.assert_allclose(slope, X * jnp.arange(3.0))


@pytest.mark.parametrize(("dtype", "order"), [(jnp.bfloat16, 24), (jnp.float16, 12)])
def test_factorials_beyond_low_precision(dtype, order):
    y = jnp.asarray(100.0, dtype)
    last = tn.solution_derivatives(lambda t, y, args: -y, jnp.zeros((), dtype), y, order=order)[-1]
    assert abs(float(last) - float(y)) <= 0.3 * float(y)


def test_complex_rate_of_a_real_state_was_made_real():
    with pytest.raises(TypeError, match="Make that part of `y` complex"):
        tn.solution_derivatives(lambda t, y, args: y.astype(complex), 0.0, X, order=2)
    with pytest.raises(TypeError, match="got complex128 for float64"):
        tn.jet(jnp.sin, (X,), ([X.astype(complex)],))
    with pytest.raises(ValueError, match="real scalar"):
        tn.solution_derivatives(lambda t, y, args: y, 1j, X, order=2)


@pytest.mark.parametrize("wrapped", ["custom_jvp", "while"])
def test_effects_were_repeated(wrapped):
    seen = []

    def noisy(x):
        jax.debug.callback(lambda x: seen.append(float(x)), x)
        return jnp.sin(x)

    def looped(x):
        return lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, noisy(c[1])), (0, x))[1]

    custom = jax.custom_jvp(noisy)
    custom.defjvp(lambda p, t: (custom(*p), jnp.cos(*p) * t[0]))
    fun = custom if wrapped == "custom_jvp" else looped
    jax.block_until_ready(tn.jet(fun, (0.5,), ([1.0, 0.0, 0.0],)))
    jax.effects_barrier()
    assert seen == [0.5]


@pytest.mark.parametrize(
    ("primals", "series", "name"),
    [(1.0, ([1.0],), "`primals`"), ((1.0,), (1.0,), r"`series\[0\]`")],
)
def test_arguments_that_are_no_sequences(primals, series, name):
    with pytest.raises(TypeError, match=name):
        tn.jet(jnp.sin, primals, series)


@pytest.mark.parametrize(
    ("primal", "terms"),
    [
        (1, [1.0, 0.0]),
        (1, [1, 0]),
        (True, [1.0, 0.0]),
        (np.array([1, 2], np.int32), [np.ones(2, np.float32), np.zeros(2, np.float32)]),
    ],
    ids=["int", "int_series", "bool", "array"],
)
def test_integer_that_moves_had_zero_derivatives(primal, terms):
    got, expected = (jet(jnp.sin, (primal,), (terms,)) for jet in (tn.jet, jax_jet))
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-6)
    np.testing.assert_allclose(np.array(got[1]), np.array(expected[1]), rtol=1e-6, atol=1e-6)


def test_integer_leaf_that_moves_had_zero_derivatives():
    def fun(p):
        return p["x"] * jnp.sin(p["n"])

    point, terms = {"x": 2.0, "n": 1}, {"x": [0.0], "n": [1.0]}
    for moves in (terms, [{"x": 0.0, "n": 1.0}]):
        (slope,) = tn.jet(fun, (point,), (moves,))[1]
        assert slope == pytest.approx(2 * np.cos(1.0))
    # Under `jit` the terms are not known, so that the integer may move.
    (slope,) = jax.jit(lambda moves: tn.jet(fun, (point,), (moves,))[1])(terms)
    assert slope == pytest.approx(2 * np.cos(1.0))


def test_a_random_key_cannot_move():
    def fun(p):
        return jax.random.normal(p["key"])

    with pytest.raises(TypeError, match=r"zero for `primals\[0\]\['key'\]`"):
        tn.jet(fun, ({"key": jax.random.key(0)},), ([{"key": 1.0}],))
