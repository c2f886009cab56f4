"""Neural controlled differential equations, against SciPy and against single series."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import taynode as tn
from taynode.models import NeuralCDE, Solve


KNOTS = np.array([0.0, 0.13, 0.4, 0.55, 0.8, 1.0])
VALUES = np.random.default_rng(0).standard_normal((3, 6, 2))
MODEL = NeuralCDE(2, 4, 5, 3, key=jr.key(0))


def linear(values):
    knots = jnp.asarray(KNOTS)
    return jax.vmap(lambda ys: dfx.LinearInterpolation(knots, ys))(jnp.asarray(values))


def cubic(values):
    def control(ys):
        coefficients = dfx.backward_hermite_coefficients(jnp.asarray(KNOTS), ys)
        return dfx.CubicInterpolation(jnp.asarray(KNOTS), coefficients)

    return jax.vmap(control)(jnp.asarray(values))


def by_scipy(values, make):
    """The logits of one series, piece by piece."""
    arrays = jtu.tree_map(np.asarray, eqx.filter(MODEL, eqx.is_array))
    dense = lambda layer, x: x @ layer.weight + layer.bias
    slopes = np.diff(values, axis=0) / np.diff(KNOTS)[:, None]
    coefficients = [0 * slopes, 0 * slopes, slopes]
    if make is cubic:
        coefficients = [np.asarray(x[0]) for x in cubic(values[None]).coeffs[:3]]
    y = dense(arrays.initial, values[0])

    def slope(t, y, i):
        d, c, b = (x[i] for x in coefficients)
        s = t - KNOTS[i]
        hidden = np.logaddexp(0, dense(arrays.vector_field.first, y))
        matrix = np.tanh(dense(arrays.vector_field.second, hidden)).reshape(4, 2)
        return matrix @ (b + 2 * c * s + 3 * d * s**2)

    for i in range(len(KNOTS) - 1):
        y = solve_ivp(slope, KNOTS[i : i + 2], y, args=(i,), rtol=1e-10, atol=1e-10).y[:, -1]
    return dense(arrays.head, y)


@pytest.mark.parametrize("make", [pytest.param(linear, marks=pytest.mark.slow), cubic])
def test_logits_are_those_of_scipy(make):
    """With few steps, too, since none of them crosses a knot."""
    exact = np.stack([by_scipy(x, make) for x in VALUES])
    for tolerance in (1e-3, 1e-8):
        controller = dfx.PIDController(rtol=tolerance, atol=tolerance)
        logits, solution = evaluate(MODEL, make(VALUES), controller)
        np.testing.assert_allclose(logits, exact, atol=20 * tolerance)
        assert solution.stats["nfe_exact"] is True


@eqx.filter_jit
def evaluate(model, controls, controller):
    return model(controls, Solve(dfx.Tsit5(), controller))


def test_steps_across_knots_are_less_accurate():
    free = NeuralCDE(2, 4, 5, 3, at_knots=False, key=jr.key(0))
    exact = np.stack([by_scipy(x, cubic) for x in VALUES])
    controller = dfx.PIDController(rtol=1e-3, atol=1e-3)
    errors = [
        np.abs(evaluate(model, cubic(VALUES), controller)[0] - exact).max()
        for model in (MODEL, free)
    ]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize("make", [pytest.param(linear, marks=pytest.mark.slow), cubic])
def test_the_penalty_of_a_batch_is_the_mean_of_its_rows(make):
    """Each row of a joint batch is penalized along its own control."""
    solve = Solve(
        solver=dfx.Tsit5(),
        stepsize_controller=dfx.PIDController(rtol=1e-6, atol=1e-6),
        regularizer=tn.TotalDerivative(2),
        quadrature=tn.Augmented(),
    )
    penalty = eqx.filter_jit(lambda values, solve: MODEL(make(values), solve)[1].stats["penalty"])
    # Batches of one size, so that one program does.
    alone = [penalty(np.stack([x] * len(VALUES)), solve) for x in VALUES]
    np.testing.assert_allclose(penalty(VALUES, solve), np.mean(alone), rtol=1e-4)


def test_sampled_rows_have_finite_gradients():
    solve = Solve(num_steps=12, solver=dfx.Bosh3(), regularizer=tn.TotalDerivative(2))

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model, key):
        logits, solution = model(cubic(VALUES), solve, key=key)
        return jnp.sum(logits**2) + solution.stats["penalty"]

    leaves = jtu.tree_leaves(gradient(MODEL, jr.key(1)))
    assert all(np.all(np.isfinite(x)) for x in leaves)
    assert all(np.any(x != 0) for x in leaves)
