"""What cannot be done raises, naming the argument."""

import warnings

import diffrax as dfx
import jax.numpy as jnp
import optimistix as optx
import pytest

import taynode as tn
from tests.integration.problems import KEY, pendulum, pid, TSIT5, Y0


SPEED = tn.TotalDerivative(order=2)


def solve(lib=tn, *, terms=None, solver=TSIT5, dt0=0.1, y0=Y0, t1=1.0, **options):
    terms = dfx.ODETerm(pendulum) if terms is None else terms
    options.setdefault("stepsize_controller", pid(1e-3))
    return lib.diffeqsolve(terms, solver, 0.0, t1, dt0, y0, **options)


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
