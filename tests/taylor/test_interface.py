"""Calling conventions, rules of one's own, and what is said about misuse."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.experimental.jet import jet as jax_jet
from jax.extend.core import Primitive, primitives

import taynode as tn


X = jnp.array([0.3, -0.5, 0.8])
TERMS = [jnp.array([1.0, 0.5, -1.0]), jnp.array([0.2, 0.1, 0.0]), jnp.array([-1.0, 2.0, 3.0])]


def close(a, b):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13), a, b)


# --- jet


@pytest.mark.parametrize("factorial_scaled", [True, False])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: jnp.sin(x) * x,
        lambda x: (jnp.exp(x), [jnp.tanh(x), x]),
        lambda x: {"a": jnp.sum(x), "b": 3.0 * jnp.ones(2)},
    ],
)
def test_jet_replaces_the_experimental_one_by_import(fun, factorial_scaled):
    ours = tn.jet(fun, (X,), (TERMS,), factorial_scaled=factorial_scaled)
    theirs = jax_jet(fun, (X,), (TERMS,), factorial_scaled=factorial_scaled)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    close(ours, theirs)


def test_jet_takes_several_arguments():
    ours = tn.jet(jnp.arctan2, (X, X + 2), (TERMS, TERMS[::-1]))
    close(ours, jax_jet(jnp.arctan2, (X, X + 2), (TERMS, TERMS[::-1])))


def test_jet_of_pytree_arguments_in_both_layouts():
    def fun(p):
        return p["a"] * jnp.sin(p["b"])

    expected = tn.jet(lambda a, b: fun({"a": a, "b": b}), (X, 2 * X), (TERMS, TERMS[::-1]))
    point = {"a": X, "b": 2 * X}
    by_leaf = {"a": TERMS, "b": TERMS[::-1]}
    by_term = [{"a": a, "b": b} for a, b in zip(TERMS, TERMS[::-1], strict=True)]
    close(tn.jet(fun, (point,), (by_leaf,)), expected)
    close(tn.jet(fun, (point,), (by_term,)), expected)


def test_jet_of_a_list_argument():
    terms_by_leaf = [TERMS, TERMS[::-1]]
    got = tn.jet(lambda p: p[0] * p[1], ([X, 2 * X],), (terms_by_leaf,))
    close(got, tn.jet(lambda a, b: a * b, (X, 2 * X), (TERMS, TERMS[::-1])))


def test_jet_of_order_zero():
    primal, series = tn.jet(jnp.sin, (X,), ([],))
    close(primal, jnp.sin(X))
    assert series == []


@pytest.mark.parametrize(
    ("primals", "series", "message"),
    [
        ((X,), (TERMS, TERMS), "entry for each argument"),
        ((X, X), (TERMS, TERMS[:2]), "one length"),
        ((X,), ([jnp.ones(2)],), "shapes of `primals`"),
        (({"a": X},), ([{"b": X}],), "pytree"),
    ],
)
def test_jet_explains_misuse(primals, series, message):
    with pytest.raises(ValueError, match=message):
        tn.jet(lambda *x: x, primals, series)


# --- expansions


def test_the_first_derivative_is_the_field():
    def field(t, y, args):
        return jnp.sin(y) * t

    close(tn.solution_derivatives(field, 0.3, X, order=1), [field(0.3, X, None)])


def test_coefficients_are_derivatives_over_factorials():
    def field(t, y, args):
        return jnp.sin(y) * t

    y, *rest = tn.taylor_coefficients(field, 0.3, X, order=4)
    close(y, X)
    derivatives = tn.solution_derivatives(field, 0.3, X, order=4)
    close(rest, [d / f for d, f in zip(derivatives, (1, 2, 6, 24), strict=True)])


@pytest.mark.parametrize("order", [0, -1, True])
def test_order_must_be_a_positive_integer(order):
    with pytest.raises(ValueError, match="`order` must be"):
        tn.solution_derivatives(lambda t, y, args: y, 0.0, X, order=order)


def test_integer_time_is_a_real_number():
    close(
        tn.solution_derivatives(lambda t, y, args: t * y, 2, X, order=3),
        tn.solution_derivatives(lambda t, y, args: t * y, 2.0, X, order=3),
    )


@pytest.mark.parametrize(
    ("field", "t", "y", "error", "message"),
    [
        (lambda t, y, args: y, 0.0, jnp.arange(3), TypeError, "Put constants into `args`"),
        (lambda t, y, args: y, jnp.zeros(2), X, ValueError, "`t` must be a real scalar"),
        (lambda t, y, args: y[:2], 0.0, X, ValueError, r"expected \(3,\), got \(2,\)"),
        (lambda t, y, args: (y, y), 0.0, X, ValueError, "pytree like `y`"),
    ],
)
def test_expansions_explain_misuse(field, t, y, error, message):
    with pytest.raises(error, match=message):
        tn.solution_derivatives(field, t, y, order=2)


# --- what has no derivative


def test_a_callback_has_no_derivative_and_the_message_says_where():
    def field(t, y, args):
        return jax.pure_callback(np.sin, y, y)

    with pytest.raises(tn.NoDerivativeError) as caught:
        tn.solution_derivatives(field, 0.0, X, order=2)
    message = str(caught.value)
    assert "`pure_callback`" in message
    assert f"{__file__}:" in message
    assert "says_where.<locals>.field)" in message
    assert "custom_jvp" in message
    assert "register_rule" in message


def test_order_one_needs_no_derivative():
    (rate,) = tn.solution_derivatives(
        lambda t, y, args: jax.pure_callback(np.sin, y, y), 0.0, X, order=1
    )
    close(rate, jnp.sin(X))


def test_a_derivative_that_ends_is_blamed_on_its_function():
    with pytest.raises(tn.NoDerivativeError, match="derivative of `igamma`"):
        tn.jet(lambda x: jax.lax.igamma(x, x), (X**2,), (TERMS,))


def test_a_callback_of_constants_is_fine():
    scale = jnp.array(2.0)

    def field(t, y, args):
        return y * jax.pure_callback(np.sqrt, args, args)

    close(
        tn.solution_derivatives(field, 0.0, X, scale, order=2)[-1],
        X * 2.0,
    )


# --- rules of one's own


def exp_rule(k, inputs, outputs, memory):
    (u,), (y,) = inputs, outputs
    return sum(j * u[j] * y[k - j] for j in range(1, k + 1)) / k


def test_rule_for_a_function_survives_jit_vmap_and_loops():
    orders = []

    def rule(k, inputs, outputs, memory):
        orders.append(k)
        return exp_rule(k, inputs, outputs, memory)

    exp = tn.register_rule(jnp.exp, rule)
    w = jr.normal(jr.key(0), (3, 3))

    def field(exp):
        def fun(t, y, args):
            y = jax.vmap(jax.jit(exp))(w @ y)
            return jax.lax.scan(lambda c, _: (exp(-c) * t, None), y, None, length=2)[0]

        return fun

    got = tn.solution_derivatives(field(exp), 0.5, X, order=4)
    close(got, tn.solution_derivatives(field(jnp.exp), 0.5, X, order=4))
    assert sorted(set(orders)) == [1, 2, 3]


def test_function_with_a_rule_is_still_a_function():
    exp = tn.register_rule(jnp.exp, exp_rule)
    close(exp(X), jnp.exp(X))
    close(jax.jit(exp)(X), jnp.exp(X))
    close(jax.vmap(exp)(X), jnp.exp(X))
    close(jax.grad(lambda x: jnp.sum(exp(x)))(X), jnp.exp(X))
    gradient = jax.grad(lambda x: jnp.sum(tn.jet(exp, (x,), (TERMS,))[1][-1]))
    expected = jax.grad(lambda x: jnp.sum(tn.jet(jnp.exp, (x,), (TERMS,))[1][-1]))
    close(gradient(X), expected(X))


def test_rule_gives_a_derivative_to_what_has_none():
    def sine(x):
        return jax.pure_callback(np.sin, x, x, vmap_method="expand_dims")

    def rule(k, inputs, outputs, memory):
        (u,), (y,) = inputs, outputs
        if k == 1:
            memory[0] = jnp.cos(u[0])
        cosine = [memory[j] for j in range(k)]
        if k < 4:
            memory[k] = -sum(j * u[j] * y[k - j] for j in range(1, k + 1) if k > j) / k
            memory[k] = memory[k] - u[k] * y[0]
        return sum(j * u[j] * cosine[k - j] for j in range(1, k + 1)) / k

    sine = tn.register_rule(sine, rule)
    _, series = tn.jet(lambda x: jax.vmap(sine)(x) * 2, (X,), (TERMS,))
    close(series, tn.jet(lambda x: jnp.sin(x) * 2, (X,), (TERMS,))[1])


def test_rule_for_a_primitive_gets_its_parameters():
    power_p = Primitive("test_power")
    power_p.def_impl(lambda x, *, n: x**n)
    power_p.def_abstract_eval(lambda x, *, n: x)
    got = tn.register_rule(power_p, lambda k, inputs, outputs, memory, *, n: n * inputs[0][k])
    assert got is power_p
    _, series = tn.jet(lambda x: power_p.bind(x, n=3), (X,), (TERMS,))
    close(series, [3 * term for term in TERMS])


def test_rule_of_another_primitive():
    """A primitive for matrix products, without a JVP rule."""
    product_p = Primitive("test_product")
    product_p.def_impl(lambda a, b: a @ b)
    product_p.def_abstract_eval(lambda a, b: a.update(shape=(*a.shape[:-1], b.shape[-1])))
    tn.register_rule(product_p, primitives.dot_general_p)
    a, b = jnp.outer(X, X), jnp.outer(X, TERMS[0])
    got = tn.jet(product_p.bind, (a, b), ([b, a], [a, a]))
    close(got, tn.jet(jnp.matmul, (a, b), ([b, a], [a, a])))


def test_rule_of_a_primitive_that_has_none():
    with pytest.raises(ValueError, match="must be a primitive with a Taylor rule"):
        tn.register_rule(Primitive("test_target"), Primitive("test_unknown"))
    with pytest.raises(TypeError, match="`rule` must be a function"):
        tn.register_rule(jnp.exp, primitives.exp_p)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda k, inputs, outputs, memory: [X, X], "one for each output, got 2"),
        (lambda k, inputs, outputs, memory: jnp.ones(2), r"shape \(3,\), got \(2,\)"),
    ],
)
def test_a_wrong_rule_is_told_so(rule, message):
    with pytest.raises(ValueError, match=message):
        tn.jet(tn.register_rule(jnp.exp, rule), (X,), (TERMS,))


def test_a_rule_needs_something_to_belong_to():
    with pytest.raises(TypeError, match="primitive or a function"):
        tn.register_rule("exp", exp_rule)
