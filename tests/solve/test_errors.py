"""What cannot be done raises, naming the argument; what goes wrong in a solve is told."""

import warnings

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import taynode as tn

from .problems import KEY, pendulum, pid, TSIT5, Y0


SPEED = tn.TotalDerivative(order=2)


def solve(lib=tn, *, terms=None, solver=TSIT5, dt0=0.1, y0=Y0, t1=1.0, **options):
    terms = dfx.ODETerm(pendulum) if terms is None else terms
    options.setdefault("stepsize_controller", pid(1e-3))
    return lib.diffeqsolve(terms, solver, 0.0, t1, dt0, y0, **options)


# Arguments.


def test_regularizer_that_needs_a_key_says_so():
    for regularizer in (tn.JacobianFrobenius(), tn.RNODE(), {"a": SPEED, "b": tn.RNODE()}):
        with pytest.raises(ValueError, match="needs `key=`"):
            solve(regularizer=regularizer)


def test_sampled_needs_a_key_and_says_so():
    with pytest.raises(ValueError, match=r"`quadrature=Sampled\(\)`.*`key=`"):
        solve(regularizer=SPEED, quadrature=tn.Sampled())


@pytest.mark.parametrize("order", [0, -1, 2.0, True, "2", None])
def test_order_must_be_a_positive_integer(order):
    with pytest.raises((ValueError, TypeError), match="order"):
        tn.TotalDerivative(order=order)


@pytest.mark.parametrize("points", [0, 1.0, True])
def test_points_must_be_a_positive_integer(points):
    with pytest.raises((ValueError, TypeError), match="points"):
        tn.Sampled(points=points)


def noise():
    path = dfx.UnsafeBrownianPath(shape=(), key=KEY)
    return dfx.ControlTerm(lambda t, y, args: 0.1 * y, path)


TERMS = {
    "MultiTerm": lambda: dfx.MultiTerm(dfx.ODETerm(pendulum), noise()),
    "ControlTerm": noise,
    "tuple": lambda: (dfx.ODETerm(pendulum), dfx.ODETerm(pendulum)),
}


@pytest.mark.parametrize("name", TERMS)
def test_terms_other_than_ordinary_ones_are_refused(name):
    message = f"`regularizer` needs `terms` to be an `ODETerm`, got `{name}`"
    with pytest.raises(TypeError, match=message):
        solve(terms=TERMS[name](), solver=dfx.Heun(), regularizer=SPEED)


@pytest.mark.parametrize(
    ("regularizer", "message"),
    [
        (tn.TotalDerivative, r"`regularizer` must be.*Did you mean `TotalDerivative\(\.\.\.\)`"),
        (1.0, r"`regularizer` must be.*got 1\.0"),
        (3, r"`regularizer` must be.*got 3"),
        ([SPEED, tn.KineticEnergy], r"`regularizer` must be.*KineticEnergy\(\.\.\.\)"),
        ([], "`regularizer` is an empty pytree; pass `None`"),
        ({"a": None}, "`regularizer` is an empty pytree; pass `None`"),
    ],
)
def test_regularizer_that_is_none(regularizer, message):
    with pytest.raises((TypeError, ValueError), match=message):
        solve(regularizer=regularizer)


@pytest.mark.parametrize("quadrature", [tn.Augmented, tn.Sampled, 3, None])
def test_quadrature_that_is_none(quadrature):
    with pytest.raises(TypeError, match="`quadrature` must be one such as") as error:
        solve(regularizer=SPEED, quadrature=quadrature)
    assert ("Did you forget the parentheses?" in str(error.value)) == isinstance(quadrature, type)


@pytest.mark.parametrize(
    ("axis", "y0", "message"),
    [
        (1, Y0, "`batch_axis=1` does not exist in `y0`.*shape"),
        (-2, Y0, "`batch_axis=-2` does not exist in `y0`.*shape"),
        (0, jnp.array(1.0), "`batch_axis=0` does not exist in `y0`.*shape"),
        (0, {"a": Y0, "b": jnp.ones(3)}, r"`batch_axis=0` has different sizes.*\[2, 3\]"),
        (0, Y0, "`batch_axis=0` evaluates the vector field on one row at a time"),
    ],
)
def test_wrong_batch_axis(axis, y0, message):
    with pytest.raises(ValueError, match=message):
        solve(y0=y0, regularizer=SPEED, quadrature=tn.Sampled(batch_axis=axis), key=KEY)


def test_implicit_adjoint_has_no_path():
    with pytest.raises(ValueError, match=r"`adjoint=ImplicitAdjoint\(\)`.*`regularizer`"):
        solve(regularizer=SPEED, adjoint=dfx.ImplicitAdjoint())


def test_backward_does_not_exist_in_forward_mode():
    with pytest.raises(ValueError, match=r"`quadrature=Backward\(\)`.*`adjoint=ForwardMode\(\)`"):
        solve(regularizer=SPEED, quadrature=tn.Backward(), adjoint=dfx.ForwardMode())


def test_backward_with_an_implicit_solver_works_or_names_both():
    # BUG, fixed: implicit solvers differentiate in forward mode, and the error was JAX's.
    message = None
    try:
        solve(solver=dfx.Kvaerno3(), regularizer=SPEED, quadrature=tn.Backward())
    except (TypeError, ValueError, NotImplementedError) as error:
        message = str(error)
    assert message is None or ("Backward()" in message and "solver" in message)


def test_backward_does_not_know_where_an_event_moves():
    event = dfx.Event(lambda t, y, args, **kwargs: y[0], optx.Newton(1e-6, 1e-6))
    with pytest.raises(ValueError, match=r"`quadrature=Backward\(\)`.*`event`.*`root_finder`"):
        solve(event=event, regularizer=SPEED, quadrature=tn.Backward())


@pytest.mark.parametrize("quadrature", [None, tn.Augmented(), tn.Backward()])
def test_constant_steps_need_a_step(quadrature):
    regularized = {} if quadrature is None else dict(regularizer=SPEED, quadrature=quadrature)
    with pytest.raises(ValueError, match="dt0"):
        solve(dt0=None, stepsize_controller=dfx.ConstantStepSize(), **regularized)


def test_function_as_first_step_needs_adaptive_steps():
    with pytest.raises(ValueError, match=r"`dt0` can be a function only.*`ConstantStepSize`"):
        solve(dt0=tn.initial_step_size, stepsize_controller=dfx.ConstantStepSize())


def test_first_step_in_the_wrong_direction():
    with pytest.raises(Exception, match=r"\(t1 - t0\) \* dt0 >= 0"):
        solve(dt0=-0.1)


# Tolerances.


def test_tolerance_below_the_precision_warns():
    single = Y0.astype(jnp.float32)
    times = dict(dt0=jnp.float32(0.1), t1=jnp.float32(0.2))
    run = lambda controller: tn.diffeqsolve(
        dfx.ODETerm(pendulum),
        dfx.Tsit5(),
        jnp.float32(0.0),
        times["t1"],
        times["dt0"],
        single,
        stepsize_controller=controller,
        throw=False,
        max_steps=10,
    )
    fine = pid(1.4e-8)
    nested = dfx.ClipStepSizeController(fine, step_ts=jnp.array([0.1], jnp.float32))
    for controller in (fine, nested):
        with pytest.warns(UserWarning, match="`rtol=1.4e-08` is below what float32 can resolve"):
            run(controller)


def test_tolerance_above_the_precision_does_not_warn():
    solve(stepsize_controller=pid(1e-12), t1=0.01, max_steps=100, throw=False)


def test_absolute_tolerance_alone_does_not_warn():
    # BUG, fixed: zero is a tolerance that many choose, since the absolute one decides then.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(stepsize_controller=dfx.PIDController(rtol=0.0, atol=1e-3))


# Solves that fail.


def failing(t, y, args):
    """What happens to the state depends on the argument."""
    late = t > 0.5
    choices = {
        "works": -y,
        "not a number": jnp.where(late, jnp.nan, -y),
        "blows up": y**2,
        "wild": jnp.sin(1e5 * t) * jnp.ones_like(y),
    }
    index = list(FAILURES).index
    return jnp.select([args == index(name) for name in FAILURES], list(choices.values()))


STUCK = "dt_min_reached"
FAILURES = {
    "works": "successful",
    "not a number": STUCK,
    "blows up": STUCK,
    "wild": "max_steps_reached",
}


def fail(which, *, throw, regularizer=SPEED, **options):
    """From 1 at 0 towards 2; `y' = y^2` has a pole at 1."""
    return tn.diffeqsolve(
        dfx.ODETerm(failing),
        dfx.Tsit5(),
        0.0,
        2.0,
        None,
        jnp.array([1.0, 0.5]),
        jnp.asarray(which),
        stepsize_controller=pid(1e-4),
        max_steps=500,
        regularizer=regularizer,
        throw=throw,
        **options,
    )


def test_failures_raise_with_the_words_of_diffrax_and_a_hint():
    for i, (name, result) in enumerate(FAILURES.items()):
        if name == "works":
            fail(i, throw=True)
            continue
        with pytest.raises(Exception, match="taynode: ") as error:
            jax.block_until_ready(fail(i, throw=True))
        message = str(error.value)
        assert dfx.RESULTS[getattr(dfx.RESULTS, result)] in message
        assert "`tn.diagnose`" in message


SAMPLED = dict(quadrature=tn.Sampled(), key=KEY)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="augmented"),
        pytest.param(SAMPLED, id="sampled", marks=pytest.mark.slow),
    ],
)
def test_failures_are_returned_sample_by_sample(options):
    sol = jax.vmap(lambda i: fail(i, throw=False, **options))(jnp.arange(len(FAILURES)))
    for i, result in enumerate(FAILURES.values()):
        assert (sol.result == getattr(dfx.RESULTS, result)).tolist()[i]
    point = sol.stats["last_point"]
    # The end, the first NaN, the pole; and somewhere.
    np.testing.assert_allclose(point.time[:3], [2.0, 0.5, 1.0], atol=1e-3)
    assert 0 < point.time[3] < 2
    # What was reached is saved at the end: the state there, and its time.
    np.testing.assert_array_equal(sol.ts[:, 0], point.time)
    rms = np.sqrt(np.mean(np.asarray(sol.ys[:, 0]) ** 2, axis=-1))
    np.testing.assert_allclose(point.state, rms, rtol=1e-12)
    np.testing.assert_allclose(sol.ys[0, 0], np.exp(-2) * np.array([1.0, 0.5]), rtol=1e-3)
    # |y'| = y^2, |y''| = 2 y^3 at the pole.
    y = np.asarray(sol.ys[2, 0])
    np.testing.assert_allclose(point.slope[2], np.sqrt(np.mean(y**4)), rtol=1e-10)
    np.testing.assert_allclose(point.acceleration[2], np.sqrt(np.mean(4 * y**6)), rtol=1e-10)
    diagnosis = tn.diagnose(sol)
    assert [f.sample for f in diagnosis.findings] == [(1,), (2,), (3,)]
    # Counters are those of each sample alone.
    alone = fail(3, throw=False, **options)
    assert alone.stats["nfe"] == sol.stats["nfe"][3]


def test_step_of_length_zero_ends_the_solve_early():
    """In diffrax it goes on until `max_steps`."""
    sol = fail(1, throw=False, regularizer=None)
    assert sol.result == dfx.RESULTS.dt_min_reached
    assert sol.stats["num_steps"] < 200


def test_accepted_steps_of_length_zero_end_the_solve_early():
    # BUG, fixed: only rejected ones did. These went on until `max_steps`, or for ever.
    sol = tn.diffeqsolve(
        dfx.ODETerm(pendulum),
        dfx.Tsit5(),
        1.0,
        2.0,
        1e-20,
        Y0,
        stepsize_controller=pid(1e-3),
        throw=False,
        max_steps=100,
    )
    assert sol.result == dfx.RESULTS.dt_min_reached


@pytest.mark.parametrize("throw", [True, False])
def test_penalty_that_overflows_is_a_failure(throw):
    """The state is fine, its third derivative is about 1e21, and single precision ends at 1e38."""
    single = jnp.float32

    def run():
        return tn.diffeqsolve(
            dfx.ODETerm(lambda t, y, args: -(y - args) * single(1e7)),
            dfx.Tsit5(),
            single(0.0),
            single(1e-6),
            single(1e-8),
            jnp.array([2.0], single),
            single(1.0),
            stepsize_controller=pid(1e-3),
            regularizer=tn.TotalDerivative(order=3),
            throw=throw,
        )

    if throw:
        with pytest.raises(Exception, match=r"the penalty is infinite or NaN.*`tn.diagnose`"):
            jax.block_until_ready(run())
    else:
        sol = run()
        assert sol.result == dfx.RESULTS.nonfinite
        assert np.all(np.isfinite(sol.ys))
        assert not np.isfinite(sol.stats["penalty"])
        assert "penalty is not finite" in str(tn.diagnose(sol))


def test_limit_on_steps_returns_what_was_reached():
    saveat = dfx.SaveAt(ts=jnp.linspace(0.0, 1.0, 5))
    options = dict(t1=1.0, solver=dfx.Heun(), stepsize_controller=pid(1e-4), max_steps=20)
    plain = solve(dfx, saveat=saveat, throw=False, **options)
    sol = solve(saveat=saveat, throw=False, regularizer=SPEED, **options)
    assert sol.result == plain.result == dfx.RESULTS.max_steps_reached
    np.testing.assert_allclose(sol.ys, plain.ys, rtol=1e-12)
    assert 0 < np.isfinite(sol.ts).sum() < 5


def test_failure_with_backsolve_returns_what_was_reached():
    # BUG, fixed: output at the end was looked for in the last place, where it is not if a solve
    # ended before; and one that was added for the penalty was returned instead of the user's.
    times = jnp.array([0.3, 0.7, 0.8])

    def run(lib, saveat, **options):
        return lib.diffeqsolve(
            dfx.ODETerm(failing),
            dfx.Tsit5(),
            0.0,
            1.0,
            0.1,
            Y0,
            jnp.array(1),
            stepsize_controller=pid(1e-3),
            max_steps=200,
            saveat=saveat,
            throw=False,
            adjoint=dfx.BacksolveAdjoint(),
            **options,
        )

    saveat = dfx.SaveAt(ts=times)
    sol = run(tn, saveat, regularizer=SPEED)
    np.testing.assert_array_equal(sol.ts, run(dfx, saveat).ts)
    assert np.isfinite(sol.stats["penalty"])
    sol = run(tn, dfx.SaveAt(ts=times, t1=True))
    np.testing.assert_allclose(sol.stats["last_point"].time, 0.5, atol=1e-6)


def test_vector_field_without_derivatives_can_be_solved_without_throwing():
    # BUG, fixed: derivatives at the last point are taken even if nothing is regularized, and a
    # vector field that has none raised `NoDerivativeError`.
    def outside(t, y, args):
        return -jax.pure_callback(np.asarray, y, y, vmap_method="sequential")

    sol = solve(terms=dfx.ODETerm(outside), throw=False)
    assert sol.result == dfx.RESULTS.successful


# What diffrax takes as a vector field.


@pytest.mark.parametrize(
    ("field", "regularizer", "penalty"),
    [(lambda t, y, args: t, SPEED, 1.0), (lambda t, y, args: 2.0, tn.KineticEnergy(), 4.0)],
    ids=["an array for all components", "a number"],
)
def test_vector_field_whose_result_is_broadcast(field, regularizer, penalty):
    # BUG, fixed: diffrax broadcasts what the vector field returns to the shape of the state;
    # regularizers were given the vector field itself.
    terms = dfx.ODETerm(field)
    assert solve(dfx, terms=terms, dt0=0.5).ys.shape == (1, 2)
    sol = solve(terms=terms, dt0=0.5, regularizer=regularizer)
    np.testing.assert_allclose(sol.stats["penalty"], penalty, rtol=1e-12)


def test_vector_field_whose_result_is_of_lower_precision():
    # BUG, fixed: diffrax converts what the vector field returns to the type of the state; the
    # penalty was then of a lower precision than the state, which solvers cannot mix.
    terms = dfx.ODETerm(lambda t, y, args: jnp.cos(y.astype(jnp.float32)))
    plain = solve(dfx, terms=terms)
    sol = solve(terms=terms, regularizer=tn.KineticEnergy())
    np.testing.assert_allclose(sol.ys, plain.ys, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:Complex dtype support in Diffrax:UserWarning")
def test_complex_state():
    # BUG, fixed: a complex state next to a real penalty is more than Runge-Kutta methods can do.
    terms = dfx.ODETerm(lambda t, y, args: 1j * y)
    sol = solve(terms=terms, y0=jnp.ones(2, complex), regularizer=SPEED)
    np.testing.assert_allclose(sol.stats["penalty"], 1.0, rtol=1e-2)
