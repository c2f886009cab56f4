"""The order of every explicit solver: by its conditions, and as it is observed."""

from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import taynode as tn
from taynode.solvers.continuous import continuous_weights, stage_matrix
from taynode.solvers.trees import density, elementary_weights, trees


# (solver, order, order of the embedded method, order of the dense output)
SOLVERS = [
    (tn.solvers.RK4(), 4, 2, 3),
    (tn.solvers.Fehlberg12(), 2, 1, 2),
    (tn.solvers.CashKarp(), 5, 4, 4),
    (tn.solvers.RKFehlberg45(), 5, 4, 4),
    (tn.solvers.OwrenZennaro4(), 4, 3, 4),
    (tn.solvers.OwrenZennaro5(), 5, 4, 5),
    (tn.solvers.TanakaYamashita7(), 7, 6, 4),
]
each_solver = pytest.mark.parametrize(
    ("solver", "order", "embedded", "dense"),
    SOLVERS,
    ids=[type(row[0]).__name__ for row in SOLVERS],
)
Y0 = np.array([1.0, 0.5])


def field(t, y, args):
    return jnp.stack([y[1] * jnp.cos(t), -jnp.sin(y[0])])


def exact(times):
    def rate(t, y):
        return [y[1] * np.cos(t), -np.sin(y[0])]

    solution = scipy.integrate.solve_ivp(
        rate, (0.0, 2.0), Y0, "DOP853", t_eval=times, rtol=3e-14, atol=1e-15
    )
    return solution.y.T


def end(solution: dfx.Solution) -> Any:
    assert solution.ys is not None
    return solution.ys[-1]


def test_number_of_rooted_trees():
    assert [len(trees(n)) for n in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]


def test_densities_of_the_trees_of_order_four():
    assert sorted(density(tree) for tree in trees(4)) == [4, 8, 12, 24]


def violation(order, a, b):
    """The largest defect among the conditions of exactly this order."""
    return max(abs(b @ elementary_weights(tree, a) - 1 / density(tree)) for tree in trees(order))


@each_solver
def test_order_conditions(solver, order, embedded, dense):
    tableau = solver.tableau
    a = stage_matrix(tableau)
    for weights, last in (
        (tableau.b_sol, order),
        (tableau.b_sol - tableau.b_error, embedded),
    ):
        assert max(violation(p, a, weights) for p in range(1, last + 1)) < 1e-10
        assert violation(last + 1, a, weights) > 1e-7
    assert solver.order(None) == order


@each_solver
def test_order_conditions_of_the_dense_output(solver, order, embedded, dense):
    a, weights = stage_matrix(solver.tableau), solver.interpolation_cls.weights
    powers = np.arange(1, weights.shape[1] + 1)
    for theta in (0.1, 0.37, 0.8, 1.0):
        b = weights @ theta**powers
        for num_nodes in range(1, dense + 1):
            for tree in trees(num_nodes):
                defect = b @ elementary_weights(tree, a) - theta**num_nodes / density(tree)
                assert abs(defect) < 1e-9
    np.testing.assert_allclose(weights.sum(axis=1), solver.tableau.b_sol, atol=1e-9)


@each_solver
def test_observed_order_at_the_end_and_between_steps(solver, order, embedded, dense):
    times = jnp.array([0.77, 1.31, 1.9, 2.0])

    @jax.jit
    def solve(step):
        return dfx.diffeqsolve(
            dfx.ODETerm(field), solver, 0.0, 2.0, step, Y0, saveat=dfx.SaveAt(ts=times)
        ).ys

    # Fine enough to be in the asymptotic range, coarse enough to be above rounding.
    counts = np.array([6, 8, 12]) if order == 7 else np.array([32, 64, 128])
    errors = np.array([np.abs(solve(2.0 / n) - exact(times)).max(axis=1) for n in counts])
    slopes = -np.polyfit(np.log(counts), np.log([errors[:, :3].max(axis=1), errors[:, 3]]).T, 1)[0]
    between, end = slopes
    assert end > order - 0.15
    assert between > min(order, dense + 1) - 0.35


@each_solver
def test_adaptive_solution_agrees_with_scipy(solver, order, embedded, dense):
    """At the end of steps: dense output may be of lower order than the solution."""
    tolerance = 1e-7
    solution = dfx.diffeqsolve(
        dfx.ODETerm(field),
        solver,
        0.0,
        2.0,
        0.01,
        Y0,
        stepsize_controller=dfx.PIDController(rtol=tolerance, atol=tolerance),
        max_steps=20000,
    )
    # The error estimate of Fehlberg12 is a small part (1/512) of its error of order 1.
    factor = 1000 if order == 2 else 10
    np.testing.assert_allclose(end(solution), exact([2.0])[0], atol=factor * tolerance)


FSAL = [row[0] for row in SOLVERS if row[0].tableau.fsal]


@pytest.mark.parametrize("solver", FSAL, ids=repr)
def test_slopes_of_the_dense_output_at_both_ends_are_the_first_and_the_last_stage(solver):
    weights = solver.interpolation_cls.weights
    powers = np.arange(1, weights.shape[1] + 1)
    for theta, stage in ((0.0, 0), (1.0, -1)):
        slopes = weights @ (powers * theta ** (powers - 1))
        np.testing.assert_allclose(slopes, np.eye(len(weights))[stage], atol=1e-9)


# The others differ in their coefficients alone.
@pytest.mark.parametrize(
    "solver",
    [
        pytest.param(x, marks=() if isinstance(x, tn.solvers.CashKarp) else pytest.mark.slow)
        for x in FSAL
    ],
    ids=repr,
)
def test_dense_output_joins_smoothly(solver):
    solution = dfx.diffeqsolve(
        dfx.ODETerm(field), solver, 0.0, 2.0, 0.25, Y0, saveat=dfx.SaveAt(dense=True)
    )
    times = jnp.array([0.5 - 1e-9, 0.5 + 1e-9])
    read = jax.jit(jax.vmap(lambda t: (solution.evaluate(t), jax.jacfwd(solution.evaluate)(t))))
    values, (left, right) = read(times)
    np.testing.assert_allclose(left, right, atol=1e-7)
    np.testing.assert_allclose(left, field(0.5, values[0], None), atol=1e-7)


@pytest.mark.parametrize(
    "solver",
    [
        pytest.param(x, marks=() if type(x).__name__ in ("RK4", "CashKarp") else pytest.mark.slow)
        for x, *_ in SOLVERS
    ],
    ids=repr,
)
def test_float32_states(solver):
    def solve(y0, rate):
        term = dfx.ODETerm(lambda t, y, args: rate * y)
        t0, t1, dt0 = (jnp.float32(t) for t in (0.0, 1.0, 0.05))
        return end(dfx.diffeqsolve(term, solver, t0, t1, dt0, y0))

    single = solve(jnp.float32(1.0), jnp.float32(-1.0))
    assert single.dtype == jnp.float32
    assert float(single) == pytest.approx(np.exp(-1.0), rel=1e-3)


def test_an_impossible_extension_is_refused():
    with pytest.raises(ValueError, match="No continuous extension of order 5"):
        continuous_weights(tn.solvers.RK4.tableau, order=5, degree=5)
