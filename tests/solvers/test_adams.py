"""Adams' method: evaluations, errors, orders, dense output."""

import math
from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import taynode as tn
from taynode.solvers import Adams, AdamsController, AdamsError
from taynode.solvers.adams import AdamsState

from .adams_problems import Counter, end, exact, first_step, num_steps, PROBLEMS, solve


@pytest.mark.parametrize(
    ("name", "evaluations", "error"),
    # Of a correct implementation of the paper's reference, with the controller of that code.
    [("exponential", 43, 2.7e-9), ("rotation", 99, 4.9e-8), ("pendulum", 543, 5.6e-7)],
)
def test_evaluations_and_errors_of_the_reference_problems(name, evaluations, error):
    field, y0, t1 = PROBLEMS[name]
    tolerance = 1.4e-8
    counter = Counter(field)
    dt0, slope = first_step(counter, y0, tolerance)
    y0 = jnp.asarray(y0)
    state = Adams().init_from_slope(dfx.ODETerm(field), 0.0, 0.0, y0, None, slope)
    solution = solve(counter, 0.0, t1, dt0, y0, tolerance=tolerance, solver_state=state)
    # The start, the probe of the initial step, and two for each attempt.
    assert counter.total() == 1 + 1 + 2 * num_steps(solution)
    assert counter.total() <= 1.1 * evaluations
    # The reference's own error, without any allowance.
    assert np.max(np.abs(end(solution) - exact(field, y0, t1))) <= error


def test_evaluations_of_init_and_of_rejected_steps():
    counter = Counter(PROBLEMS["pendulum"][0])
    solution = solve(counter, 0.0, 2.0, 0.5, jnp.array([1.0, 0.0]))
    assert int(solution.stats["num_rejected_steps"]) >= 1
    assert counter.total() == 1 + 2 * num_steps(solution)


# A slope is a polynomial in t, whatever the state: its coefficients are the arguments.
POLYNOMIAL = dfx.ODETerm(lambda t, y, args: jnp.polyval(args, t))
SOLVER = Adams(rtol=1e-6, atol=1e-6)


@jax.jit
def polynomial_step(t0, t1, y0, args, state):
    y1, y_error, info, state, _ = SOLVER.step(POLYNOMIAL, t0, t1, y0, args, state, False)
    dense = SOLVER.interpolation_cls(t0=t0, t1=t1, **info)
    return y1, y_error, dense.evaluate(0.4 * t0 + 0.6 * t1), state


def monomial(degree):
    """As many coefficients for each degree, so that nothing is compiled again."""
    return jnp.zeros(15).at[14 - degree].set(1.0)


@pytest.mark.parametrize("order", [1, 2, 5, 8, 12])
def test_a_step_is_exact_for_slopes_of_the_degree_of_its_order(order):
    """A corrected step uses k + 1 slopes. Steps are irregular, with orders that are given."""
    orders = [min(i, order) for i in range(1, order + 4)]
    times = jnp.cumsum(1 + 0.5 * jnp.sin(3.0 * jnp.arange(len(orders) + 1.0)))
    times = times / times[-1]
    for degree in (order - 1, order, order + 1):
        args = monomial(degree)
        y0 = y1 = middle = t0 = t1 = jnp.array(0.0)
        state = SOLVER.init(POLYNOMIAL, times[0], times[1], y0, args)
        for t0, t1, k in zip(times, times[1:], orders, strict=False):
            y0, state = y1, state._replace(order=jnp.array(k, jnp.int32))
            y1, _, middle, state = polynomial_step(t0, t1, y0, args, state)
        integral = lambda t, t0=t0, p=degree + 1: (t**p - t0**p) / p
        defects = jnp.array([y1 - y0 - integral(t1), middle - y0 - integral(0.4 * t0 + 0.6 * t1)])
        if degree <= order:
            np.testing.assert_allclose(defects, 0.0, atol=1e-14)
        else:
            assert jnp.all(jnp.abs(defects) > 1e-13)


def test_error_estimates_of_constant_steps():
    """The coefficients of Adams-Moulton methods, from any textbook."""
    step = 0.1
    for order, coefficient in enumerate(
        [1 / 2, 1 / 12, 1 / 24, 19 / 720, 3 / 160, 863 / 60480], start=1
    ):
        # The backward differences of t^k at t = 0, for points that are `step` apart.
        points = (-step * np.arange(12.0, -1.0, -1.0)) ** order
        state = AdamsState(
            gaps=step * jnp.arange(13.0),
            differences=jnp.array([np.diff(points, n=j)[-1] for j in range(13)]),
            order=jnp.array(order, jnp.int32),
            num_steps=jnp.array(12, jnp.int32),
            starting=jnp.array(False),
        )
        zero = jnp.array(0.0)
        _, y_error, _, _ = polynomial_step(zero, jnp.array(step), zero, monomial(order), state)
        expected = coefficient * math.factorial(order) * step ** (order + 1)
        np.testing.assert_allclose(y_error.error, expected, rtol=1e-9)


def test_high_orders_are_used_where_they_pay():
    field, y0, _ = PROBLEMS["rotation"]
    saveat = dfx.SaveAt(t1=True, solver_state=True)

    @jax.jit
    def last_order(tolerance):
        solution = solve(field, 0.0, 3.0, 1e-3, jnp.array(y0), tolerance=tolerance, saveat=saveat)
        state: Any = solution.solver_state
        return state.order

    orders = [int(last_order(tolerance)) for tolerance in (1e-3, 1e-6, 1e-11)]
    assert orders == sorted(orders)
    assert orders[0] <= 6
    assert orders[-1] >= 9


def test_dense_output():
    """As accurate between steps as at their ends, and continuous across them."""
    field, y0, t1 = PROBLEMS["rotation"]
    times = jnp.linspace(0.0, t1, 201)
    saveat = dfx.SaveAt(ts=times, steps=True, dense=True)
    solution = solve(field, 0.0, t1, 1e-3, jnp.array(y0), saveat=saveat, max_steps=256)
    assert solution.ts is not None
    assert solution.ys is not None
    found = jnp.isfinite(solution.ts)
    ts, ys = solution.ts[found], solution.ys[found]
    circle = np.stack([np.cos(2 * np.pi * ts), np.sin(2 * np.pi * ts)], axis=1)
    np.testing.assert_allclose(ys, circle, atol=1e-7)
    read = lambda t: (
        solution.evaluate(t),
        solution.evaluate(t, left=False),
        solution.derivative(t),
    )
    left, right, slopes = jax.jit(jax.vmap(read))(ts)
    np.testing.assert_allclose(left, ys, atol=1e-14)
    np.testing.assert_allclose(right, ys, atol=1e-14)
    np.testing.assert_allclose(slopes, field(0.0, ys.T, None).T, atol=1e-5)


@pytest.mark.slow
def test_event():
    event = dfx.Event(lambda t, y, args, **_: y[0], optx.Newton(1e-10, 1e-10))
    solution = solve(PROBLEMS["rotation"][0], 0.0, 1.0, 1e-3, jnp.array([1.0, 0.0]), event=event)
    assert solution.ts is not None
    assert float(solution.ts[-1]) == pytest.approx(0.25, abs=1e-8)
    np.testing.assert_allclose(end(solution), [0.0, 1.0], atol=1e-7)


@pytest.mark.slow
def test_lanes_of_a_batch_take_their_own_steps():
    field, _, _ = PROBLEMS["pendulum"]
    starts = jnp.array([[0.1, 0.0], [1.5, 0.0], [3.0, 0.0]])
    saveat = dfx.SaveAt(t1=True, solver_state=True)
    one = jax.jit(lambda y0: solve(field, 0.0, 2.0, 0.01, y0, saveat=saveat))
    batch = jax.jit(jax.vmap(one))(starts)
    assert len(set(batch.stats["num_steps"].tolist())) == 3
    for lane, y0 in enumerate(starts):
        solo = one(y0)
        assert num_steps(solo) == batch.stats["num_steps"][lane]
        assert solo.solver_state.order == batch.solver_state.order[lane]
        np.testing.assert_allclose(end(solo), batch.ys[lane, -1], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("state_dtype", [jnp.float32, jnp.float64])
def test_single_precision(state_dtype):
    """Of time, and of the state if that is wanted; time is never more precise than the state."""
    t0, t1, dt0 = (jnp.float32(t) for t in (0.0, 1.0, 0.01))
    field = lambda t, y, args: y * jnp.asarray(-1, y.dtype)
    saveat = dfx.SaveAt(ts=jnp.array([0.5, 1.0], jnp.float32))
    y0 = jnp.ones(2, state_dtype)
    solution = solve(field, t0, t1, dt0, y0, tolerance=1e-5, saveat=saveat)
    assert solution.ys is not None
    assert solution.ys.dtype == state_dtype
    assert num_steps(solution) < 30
    expected = np.exp([[-0.5, -0.5], [-1.0, -1.0]])
    np.testing.assert_allclose(solution.ys, expected, atol=2e-5)


def test_backward_in_time():
    """Also from a slope at the start, which is the same in both directions."""
    field = lambda t, y, args: jnp.cos(t) * y
    y0 = jnp.exp(jnp.sin(jnp.array([2.0])))
    counter = Counter(field)
    solution = solve(counter, 2.0, 0.0, -0.01, y0)
    np.testing.assert_allclose(end(solution), [1.0], atol=1e-7)
    assert counter.total() == 1 + 2 * num_steps(solution)
    slope = field(2.0, y0, None)
    state = Adams().init_from_slope(dfx.ODETerm(field), 2.0, 2.0, y0, None, slope)
    again = solve(field, 2.0, 0.0, -0.01, y0, solver_state=state)
    np.testing.assert_array_equal(end(again), end(solution))


@pytest.mark.slow
def test_states_are_pytrees():
    field = lambda t, y, args: {"x": y["v"][0], "v": (-y["x"], None)}
    y0 = {"x": jnp.array([[1.0, 0.0]]), "v": (jnp.array([[0.0, 1.0]]), None)}
    saveat = dfx.SaveAt(ts=jnp.array([0.5, 1.5]))
    ys = solve(field, 0.0, 2.0, 0.01, y0, saveat=saveat).ys
    assert ys is not None
    expected = np.array([[[np.cos(t), np.sin(t)]] for t in (0.5, 1.5)])
    np.testing.assert_allclose(ys["x"], expected, atol=1e-7)


@pytest.mark.slow
def test_restart_at_a_jump():
    """Each attempt of the step behind a jump begins with an evaluation of its own."""
    field = lambda t, y, args: jnp.where(t < 1.0, 1.0, -2.0) * y
    counter, y0 = Counter(field), jnp.array([1.0])
    solution = solve(
        counter, 0.0, 2.0, 0.01, y0, jump_ts=[1.0], saveat=dfx.SaveAt(steps=True), max_steps=256
    )
    restarts = counter.total() - 1 - 2 * num_steps(solution)
    assert 1 <= restarts <= 3
    assert solution.ys is not None
    assert num_steps(solution) < 90
    last = int(solution.stats["num_accepted_steps"]) - 1
    np.testing.assert_allclose(solution.ys[last], np.exp([-1.0]), atol=1e-7)


def test_a_jump_that_nobody_announced():
    """Short steps behind long ones make differences of high order blind for jumps of the slope."""
    field = lambda t, y, args: jnp.where(jnp.sin(3 * t) < 0, -1.0, 1.0) - y
    y0, signs = 1.0, 1.0
    for start in np.arange(0.0, 10.0, np.pi / 3):
        duration = min(np.pi / 3, 10.0 - start)
        y0, signs = signs + (y0 - signs) * np.exp(-duration), -signs
    solved = jax.jit(lambda tol: end(solve(field, 0.0, 10.0, 1e-3, jnp.array(1.0), tolerance=tol)))
    for tolerance in (1e-6, 1e-8, 1e-10):
        assert float(solved(tolerance)) == pytest.approx(y0, abs=100 * tolerance)


def test_a_step_out_of_the_domain_is_rejected():
    field = lambda t, y, args: -jnp.sqrt(y)
    solution = solve(field, 0.0, 1.9, 1.5, jnp.array(1.0))
    assert float(end(solution)) == pytest.approx((1 - 1.9 / 2) ** 2, abs=1e-8)


def test_failure_is_reported():
    field, y0, _ = PROBLEMS["pendulum"]
    solution = solve(field, 0.0, 10.0, 0.01, jnp.array(y0), max_steps=20, throw=False)
    assert solution.result == dfx.RESULTS.max_steps_reached
    assert num_steps(solution) == 20


@pytest.mark.parametrize(
    ("kept", "raised", "size", "order", "factor"),
    [
        (True, 1.0, 0.5, 5.0, 1.0),
        (True, 0.0, 0.0, 5.0, 2.0),
        (True, 0.0, 0.05, 5.0, 1.0),
        (True, 0.0, 0.05 * 1.5**5, 5.0, 1 / 1.5),
        (True, 0.0, 0.999, 2.0, 0.5),
        (False, 1.0, 1.01, 9.0, 0.5),
        (False, 0.0, 1e9, 5.0, 0.2),
        (False, 0.0, 5.0, 2.0, 0.1),
        (False, 0.0, 1e9, 2.0, 0.01),
        (False, 0.0, np.inf, 2.0, 0.2),
    ],
)
def test_step_sizes(kept, raised, size, order, factor):
    controller = AdamsController(dfx.PIDController(rtol=0.0, atol=1e-3))
    y = jnp.zeros(3)
    func: Any = None
    t1, state = controller.init(None, 2.0, 9.0, y, 0.5, None, func, 12)
    error = AdamsError(jnp.full(3, 1e-3 * size), jnp.array(order), jnp.array(raised))
    keep_step, next_t0, next_t1, made_jump, _, _ = controller.adapt_step_size(
        jnp.array(2.0), jnp.array(t1), y, y, None, error, 12, state
    )
    assert bool(keep_step) == kept
    assert not made_jump
    assert float(next_t0) == (2.5 if kept else 2.0)
    assert float(next_t1 - next_t0) == pytest.approx(0.5 * factor)


@pytest.mark.slow
def test_smallest_step_size():
    pid = dfx.PIDController(rtol=1e-8, atol=1e-8, dtmin=0.02, dtmax=0.03)
    solution = dfx.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: -30 * y),
        Adams(rtol=1e-8, atol=1e-8),
        0.0,
        1.0,
        0.025,
        jnp.array(1.0),
        stepsize_controller=AdamsController(pid),
        saveat=dfx.SaveAt(t0=True, steps=True),
        max_steps=64,
    )
    assert solution.ts is not None
    steps = np.diff(solution.ts[jnp.isfinite(solution.ts)])
    assert np.all((steps[:-1] > 0.0199) & (steps[:-1] < 0.0301))


def test_constant_steps():
    """The order varies even so."""
    field, y0, _ = PROBLEMS["rotation"]
    solution = dfx.diffeqsolve(
        dfx.ODETerm(field), Adams(rtol=1e-8, atol=1e-8), 0.0, 1.0, 1 / 256, jnp.array(y0)
    )
    np.testing.assert_allclose(end(solution), y0, atol=1e-5)


def test_misuse_is_told():
    field, y0 = PROBLEMS["exponential"][0], jnp.array([1.0])
    term, pid = dfx.ODETerm(field), dfx.PIDController(rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="or pass them, as in"):
        dfx.diffeqsolve(term, Adams(), 0.0, 1.0, 0.1, y0, stepsize_controller=AdamsController(pid))
    with pytest.raises(ValueError, match="from 1 to 12, got 13"):
        Adams(max_order=13)
    with pytest.raises(ValueError, match=r"works only with `solver=Adams\(\)`"):
        dfx.diffeqsolve(
            term, dfx.Tsit5(), 0.0, 1.0, 0.1, y0, stepsize_controller=AdamsController(pid)
        )
    control = dfx.ControlTerm(lambda t, y, args: y, lambda t0, t1: t1**2 - t0**2)
    with pytest.raises(ValueError, match="to_ode"):
        dfx.diffeqsolve(
            control,
            Adams(rtol=1e-3, atol=1e-3),
            0.0,
            1.0,
            0.1,
            y0,
            stepsize_controller=AdamsController(pid),
        )


def test_settings_are_kept():
    solver = Adams(max_order=7).with_tolerances(1e-3, 1e-4, optx.max_norm)
    assert (solver.max_order, solver.rtol, solver.atol) == (7, 1e-3, 1e-4)
    assert solver.norm is optx.max_norm
    assert solver.order(None) == 7
    assert tn.solvers.Adams is Adams
    controller = AdamsController(dfx.PIDController(rtol=1e-3, atol=1e-4, norm=optx.max_norm))
    assert (controller.rtol, controller.atol) == (1e-3, 1e-4)
    assert controller.norm is optx.max_norm


def test_lowest_order():
    """Euler's method, corrected by the trapezoidal rule."""
    field, y0, _ = PROBLEMS["rotation"]
    controller = AdamsController(dfx.PIDController(rtol=1e-4, atol=1e-4))
    solver = Adams(1, rtol=1e-4, atol=1e-4)
    solution = dfx.diffeqsolve(
        dfx.ODETerm(field), solver, 0.0, 1.0, 1e-3, jnp.array(y0), stepsize_controller=controller
    )
    np.testing.assert_allclose(end(solution), y0, atol=1e-3)
