"""The expected number of evaluations: closed forms, solvers' own estimates, and solves."""

import math

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import taynode as tn
from benchmarks.counting import count_primitives
from taynode.regularizers.base import Setting
from taynode.solvers.continuous import stage_matrix
from tests.quadrature.reference import close


# The methods, and the powers of the step size in their error estimates.
METHODS = {
    dfx.Heun: 2,
    dfx.Midpoint: 2,
    dfx.Ralston: 2,
    dfx.Bosh3: 3,
    dfx.Dopri5: 5,
    dfx.Tsit5: 5,
    dfx.Dopri8: 8,
    tn.solvers.Fehlberg12: 2,
    tn.solvers.RK4: 3,
    tn.solvers.CashKarp: 5,
    tn.solvers.RKFehlberg45: 5,
    tn.solvers.OwrenZennaro4: 4,
    tn.solvers.OwrenZennaro5: 5,
    tn.solvers.TanakaYamashita7: 7,
}
# The coefficients of this method are rounded to 13 digits, and its error estimate is small.
ROUNDED = {tn.solvers.TanakaYamashita7: 1e-6, dfx.Dopri8: 1e-9}

WEIGHTS = np.random.default_rng(0).normal(size=(2, 4, 3))


def network(t, y, scale):
    """A small network that depends on time."""
    first, second = jnp.asarray(WEIGHTS, y.dtype)
    return scale * jnp.tanh(y @ first.T + jnp.sin(2 * t)) @ second


def leading_error(solver, field, t, y, args=None):
    """The norm of the leading term of the error estimate, from the rate."""
    regularizer = tn.ExpectedNFE(solver, rtol=0.0, atol=1.0, safety=1.0)
    _, rate = regularizer.rate(field, t, y, args, None)
    return rate ** METHODS[type(solver)]


def rms(x):
    return np.sqrt(np.mean(np.square(x)))


# --- the leading term of the error estimate


@pytest.mark.parametrize("method", METHODS)
def test_linear_systems(method):
    # Each stage is a polynomial in a h. Only the tallest tree of each order is not zero.
    rate, y = -1.3, 0.7
    matrix, weights = stage_matrix(method.tableau), np.ones(method.tableau.num_stages)
    for _ in range(METHODS[method] - 1):
        weights = matrix @ weights
    expected = abs(method.tableau.b_error @ weights * rate ** METHODS[method] * y)
    found = leading_error(method(), lambda t, y, a: rate * y, 0.0, jnp.array([y]))
    close(found, expected, ROUNDED.get(method, 1e-11))


@pytest.mark.parametrize("method", [m for m, order in METHODS.items() if order > 2])
def test_networks_expanded_stage_by_stage(method):
    tableau, order = method.tableau, METHODS[method]
    t, y = 0.3, jnp.array([0.4, -0.3, 0.8])

    def estimate(h):
        stages = []
        for c, row in zip([0.0, *tableau.c], [(), *tableau.a_lower], strict=True):
            shift = sum((float(a) * k for a, k in zip(row, stages, strict=True)), jnp.zeros(3))
            stages.append(network(t + c * h, y + h * shift, 1.0))
        return sum(b * k for b, k in zip(tableau.b_error, stages, strict=True))

    series = [1.0] + [0.0] * (order - 2)
    _, derivatives = tn.jet(estimate, (jnp.array(0.0),), (series,))
    expected = rms(derivatives[-1]) / math.factorial(order - 1)
    found = leading_error(method(), network, t, y, 1.0)
    close(found, expected, ROUNDED.get(method, 1e-11))


@pytest.mark.parametrize("method", [dfx.Bosh3, dfx.Dopri5, dfx.Tsit5])
def test_steps_of_the_solver(method):
    solver, term, order = method(), dfx.ODETerm(network), METHODS[method]
    t, y = 0.3, jnp.array([0.4, -0.3, 0.8])

    @jax.vmap
    def estimate(h):
        state = solver.init(term, t, t + h, y, 1.0)
        return solver.step(term, t, t + h, y, 1.0, state, made_jump=False)[1] / h**order

    forward, backward, half_forward, half_backward = estimate(0.04 * jnp.array([1, -1, 0.5, -0.5]))
    # Without the powers 1 to 3 of h.
    limit = (4 * (half_forward + half_backward) - (forward + backward)) / 6
    # The power 4 is left.
    close(leading_error(solver, network, t, y, 1.0), rms(limit), 3e-3)


# --- the estimate


WIDE = np.random.default_rng(0).normal(size=(2, 8, 32))
STATES = np.random.default_rng(1).normal(size=(4, 8))


def wide_network(t, y, args):
    """A random network of eight states."""
    return 3 * jnp.tanh(y @ WIDE[0] / 2 + t * args) @ WIDE[1].T / 6


@pytest.mark.parametrize(
    "method", [dfx.Bosh3, dfx.Dopri5, pytest.param(dfx.Tsit5, marks=pytest.mark.slow)]
)
def test_evaluations_of_solves(method):
    @jax.jit
    def compare(tolerance):
        solve = lambda y0: (
            tn.diffeqsolve(
                dfx.ODETerm(wide_network),
                method(),
                0.0,
                1.0,
                None,
                y0,
                WIDE[0, 0],
                stepsize_controller=dfx.PIDController(rtol=tolerance, atol=tolerance),
                regularizer=tn.ExpectedNFE(method(), tolerance, tolerance),
                quadrature=tn.Sampled(points=50),
                key=jr.key(0),
            ).stats
        )
        stats = jax.vmap(solve)(STATES)
        return [stats[x].astype(float) for x in ("penalty", "nfe", "num_steps")]

    for tolerance in (1e-5, 1e-7):
        expected, taken, num_steps = np.mean(np.asarray(compare(tolerance)), axis=1)
        assert num_steps > 5
        assert 0.8 < expected / taken < 1.2, (tolerance, expected, taken)


def test_gradients_are_those_of_differences():
    # Without `rtol`, the tolerance does not depend on the state, which is held fixed otherwise.
    regularizer = tn.ExpectedNFE(dfx.Dopri5(), rtol=0.0, atol=1e-4, interval=1.0)
    rate = jax.jit(lambda x: regularizer.rate(network, x[0], x[1:4], x[4], None)[1])
    point, step = np.array([0.3, 0.4, -0.3, 0.8, 0.9]), 1e-5
    differences = [(rate(point + s) - rate(point - s)) / (2 * step) for s in step * np.eye(5)]
    close(jax.jit(jax.grad(rate))(point), differences, 1e-7)


def rotation(t, y, args):
    return jnp.stack([-y[..., 1], y[..., 0]], axis=-1)


@pytest.mark.slow
def test_joint_and_separate_control():
    # On circles, errors have the same size everywhere. They are in proportion to the radius.
    radii = np.array([1.0, 30.0, 400.0])
    y0 = jnp.asarray(np.outer(radii, [1.0, 0.0]))
    regularizer = tn.ExpectedNFE(dfx.Bosh3(), rtol=0.0, atol=1e-4)
    rows = tn.diffeqsolve(
        dfx.ODETerm(rotation),
        dfx.Dopri5(),
        0.0,
        20.0,
        0.1,
        y0,
        regularizer=regularizer,
        quadrature=tn.Sampled(batch_axis=0),
        key=jr.key(0),
    ).stats["penalty"]
    joint = 20.0 * regularizer.in_solve(Setting(0.0, 20.0)).rate(rotation, 0.0, y0, None, None)[1]
    # The error estimate of Bosh3 is a third derivative divided by 48.
    steps = lambda radius: 20.0 / 0.9 * (radius / np.sqrt(2) / 48 / 1e-4) ** (1 / 3)
    evaluations = lambda steps: 2 + 3 * (1.5 + 1.1 * steps)
    close(joint, steps(rms(radii)), 1e-12)
    close(rows, evaluations(np.mean(steps(radii))), 1e-3)


def test_units_do_not_matter():
    y = jnp.array([0.4, -0.3, 0.8])
    regularizer = tn.ExpectedNFE(dfx.Bosh3(), rtol=1e-5, atol=1e-5, interval=1.0)
    scaled = tn.ExpectedNFE(dfx.Bosh3(), rtol=1e-5, atol=1e-2, interval=4.0)
    slow = lambda t, y, args: network(t / 4, y / 1000, args) * 1000 / 4
    _, rate = regularizer.rate(network, 0.2, y, 1.0, None)
    _, slow_rate = scaled.rate(slow, 0.8, 1000 * y, 1.0, None)
    close(4 * slow_rate, rate, 1e-12)


def test_control_of_other_strength():
    y = jnp.array([0.4, -0.3, 0.8])
    rate = lambda **options: tn.ExpectedNFE(dfx.Dopri5(), 1e-5, 1e-5, **options).rate(
        network, 0.0, y, 1.0, None
    )[1]
    close(rate(icoeff=0.3) / rate(safety=1.0), 0.9 ** (-1 / 0.3), 1e-12)


def test_no_steps_can_be_saved_on_a_constant_path():
    regularizer = tn.ExpectedNFE(dfx.Bosh3(), 1e-5, 1e-5).in_solve(Setting(2.0, 5.0))
    rate = lambda scale: regularizer.rate(network, 2.0, jnp.ones(3), scale, None)[1]
    value, slope = jax.jit(jax.value_and_grad(rate))(0.0)
    close(value, 1 / 3, 1e-12)
    close(slope, 0.0, 0, atol=1e-12)
    close(regularizer.finalize(3 * value, 2.0, 5.0), 2 + 3 * (1.5 + 1.1), 1e-12)


def test_a_part_of_the_state():
    state = jnp.array([0.4, -0.3, 0.8]), jnp.array(2.0)
    pair = lambda t, y, args: (network(t, y[0], args), jnp.sum(y[0] ** 2) * y[1])
    regularizer = tn.ExpectedNFE(dfx.Tsit5(), 1e-5, 1e-5, where=lambda y: y[0])
    slope, rate = regularizer.rate(pair, 0.2, state, 1.0, None)
    alone = tn.ExpectedNFE(dfx.Tsit5(), 1e-5, 1e-5).rate(network, 0.2, state[0], 1.0, None)
    close(slope[0], alone[0], 1e-14)
    close(rate, alone[1], 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", [dfx.Dopri5, dfx.Dopri8])
def test_single_precision(method):
    # The squares of the errors, in units of the tolerance, are larger than any number of float32.
    regularizer = tn.ExpectedNFE(method(), 1e-12, 1e-12)
    y = jnp.array([0.4, -0.3, 0.8])
    rates = [
        regularizer.rate(network, jnp.array(0.2, x.dtype), x, jnp.array(30.0, x.dtype), None)[1]
        for x in (y, y.astype(jnp.float32))
    ]
    close(rates[1], rates[0], 1e-4)


def test_cost():
    y = np.ones(3)
    count = lambda regularizer: count_primitives(
        lambda y: regularizer.rate(network, 0.2, y, 1.0, None), y
    )["dot_general"]
    products = {m: count(tn.ExpectedNFE(m(), 1e-5, 1e-5)) // 2 for m in METHODS}
    assert products[dfx.Heun] == 2
    assert products[dfx.Bosh3] == 3
    assert products[dfx.Dopri5] == 7
    assert products[dfx.Tsit5] == 11
    assert products[dfx.Dopri8] == 11


# --- misuse


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (tn.solvers.Adams(), "not defined for `solver=Adams"),
        (dfx.Kvaerno5(), "not defined for `solver=Kvaerno5"),
        (dfx.Euler(), "not defined for `solver=Euler"),
        (dfx.HalfSolver(dfx.Dopri5()), "not defined for `solver=HalfSolver"),
        (dfx.Dopri5, r"Did you mean `Dopri5\(\)`"),
    ],
)
def test_solvers_without_such_an_estimate_are_refused(solver, message):
    with pytest.raises(TypeError, match=message):
        tn.ExpectedNFE(solver, 1e-5, 1e-5)


def test_negative_tolerances_are_refused():
    with pytest.raises(ValueError, match="`atol` must not be negative, got -1"):
        tn.ExpectedNFE(dfx.Dopri5(), 1e-5, -1)


def test_a_solve_of_length_zero_needs_what_a_solve_needs_at_least():
    # BUG, fixed: a step per interval was infinite, and zero times it NaN.
    nothing = tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: -y),
        dfx.Dopri5(),
        1.0,
        1.0,
        None,
        jnp.ones(2),
        stepsize_controller=dfx.PIDController(1e-5, 1e-5),
        regularizer=tn.ExpectedNFE(dfx.Dopri5(), 1e-5, 1e-5),
        key=jax.random.key(0),
    )
    assert nothing.stats["penalty"] == 2 + 6 * 1.5
