"""What derivatives cost, counted exactly on the jaxpr before XLA."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import taynode as tn
from benchmarks.counting import count_primitives


def mlp(sizes, activation):
    """A field like the paper's: time is concatenated to the input of every layer."""
    weights = [np.ones((m + 1, n)) for m, n in itertools.pairwise(sizes)]

    def field(t, y, weights):
        for w in weights:
            time = jnp.broadcast_to(t, (y.shape[0], 1))
            y = jnp.concatenate([activation(y), time], axis=1) @ w
        return y

    return field, weights


SIZES = {2: (5, 7, 5), 3: (2, 4, 4, 2)}
ACTIVATIONS = {
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "softplus": jax.nn.softplus,
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
}


@pytest.mark.parametrize("order", range(1, 9))
@pytest.mark.parametrize("num_products", SIZES)
def test_each_matrix_product_once_per_order(num_products, order):
    field, weights = mlp(SIZES[num_products], jax.nn.sigmoid)
    y = np.ones((4, SIZES[num_products][0]))
    counts = count_primitives(
        lambda y, w: tn.solution_derivatives(field, 0.3, y, w, order=order), y, weights
    )
    assert counts["dot_general"] == order * num_products


@pytest.mark.parametrize("order", range(1, 9))
@pytest.mark.parametrize("num_products", SIZES)
def test_the_gradient_costs_three_evaluations_per_order(num_products, order):
    field, weights = mlp(SIZES[num_products], jax.nn.sigmoid)
    y = np.ones((4, SIZES[num_products][0]))

    def penalty(weights, y):
        return jnp.sum(tn.solution_derivatives(field, 0.3, y, weights, order=order)[-1] ** 2)

    counts = count_primitives(jax.grad(penalty), weights, y)
    assert counts["dot_general"] <= 3 * order * num_products


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_no_activation_adds_matrix_products(name):
    field, weights = mlp((5, 7, 5), ACTIVATIONS[name])
    counts = count_primitives(
        lambda y: tn.solution_derivatives(field, 0.3, y, weights, order=5), jnp.ones((3, 5))
    )
    assert counts["dot_general"] == 5 * 2


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "softplus"])
def test_elementwise_work_grows_linearly_with_the_order(name):
    """Order k adds O(k) products, so the second difference in K is constant.

    A square takes half its products twice, which makes even and odd orders differ.
    """
    field, weights = mlp((5, 7, 5), ACTIVATIONS[name])

    def products(order):
        return count_primitives(
            lambda y: tn.solution_derivatives(field, 0.3, y, weights, order=order),
            jnp.ones((3, 5)),
        )["mul"]

    totals = [products(order) for order in (4, 6, 8, 10)]
    added = [b - a for a, b in itertools.pairwise(totals)]
    first, second = (b - a for a, b in itertools.pairwise(added))
    assert second == first <= 40


def test_equinox_mlp_costs_the_same():
    model = eqx.nn.MLP(3, 3, 16, 2, key=jr.key(0))
    counts = count_primitives(
        lambda y: tn.solution_derivatives(lambda t, y, args: model(y), 0.0, y, order=4),
        jnp.ones(3),
    )
    assert counts["dot_general"] == 4 * 3


def test_jet_of_a_dense_layer_skips_the_weights():
    w = jnp.ones((3, 3))
    x = jnp.ones(3)
    counts = count_primitives(lambda x: tn.jet(lambda x: w @ x, (x,), ([x] * 4,)), x)
    assert counts["dot_general"] == 5


def test_parameters_and_time_cost_nothing_above_their_degree():
    """cos(omega) and t**2 are polynomials of low degree in t: nothing is left at high orders."""

    def field(t, y, omega):
        return jnp.cos(omega) * t * t + 0 * y

    def size(order):
        counts = count_primitives(
            lambda omega: tn.solution_derivatives(field, 0.3, 1.0, omega, order=order), 2.0
        )
        return counts["cos"], counts["sin"]

    assert size(8) == (1, 0)


def test_a_product_of_moving_matrices_costs_one_product_per_pair():
    counts = count_primitives(lambda x: tn.jet(lambda x: x @ x, (x,), ([x] * 3,)), jnp.eye(2))
    assert counts["dot_general"] == 1 + 2 + 3 + 4


def test_scan_runs_its_body_once_per_order():
    w = jnp.eye(3)

    def field(t, y, args):
        return jax.lax.scan(lambda c, _: (jnp.tanh(w @ c), None), y, None, length=7)[0]

    counts = count_primitives(
        lambda y: tn.solution_derivatives(field, 0.0, y, order=4), jnp.ones(3)
    )
    assert counts["scan"] == 4
    assert counts["dot_general"] == 4


def test_scan_does_not_stack_what_no_iteration_changes():
    """The transpose of the weights is made once, outside, and no copy of it is stored."""
    w = jnp.ones((50, 50))

    def field(t, y, args):
        return jax.lax.scan(lambda c, _: (jnp.tanh(w.T @ c), None), y, None, length=7)[0]

    def sizes(jaxpr):
        return [v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars]

    jaxpr = jax.make_jaxpr(lambda y: tn.solution_derivatives(field, 0.0, y, order=3))(jnp.ones(50))
    assert max(sizes(jaxpr.jaxpr)) <= 50 * 50


def test_cond_runs_each_branch_once_per_order():
    w = jnp.eye(3)

    def field(t, y, args):
        return jax.lax.cond(y[0] > 0, lambda y: jnp.tanh(w @ y), lambda y: y, y)

    counts = count_primitives(
        lambda y: tn.solution_derivatives(field, 0.0, y, order=4), jnp.ones(3)
    )
    assert counts["cond"] == 4
    assert counts["dot_general"] == 4


def test_while_costs_what_the_documentation_says():
    w = jnp.eye(3)

    def field(t, y, args):
        return jax.lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.tanh(w @ c[1])), (0, y)
        )[1]

    counts = count_primitives(
        lambda y: tn.solution_derivatives(field, 0.0, y, order=4), jnp.ones(3)
    )
    assert counts["dot_general"] == 1 + 2 + 3 + 4
