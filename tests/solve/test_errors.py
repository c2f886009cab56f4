"""What cannot be done raises, naming the argument."""

import inspect
import re
import warnings

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
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
            solve(regularizer=regularizer, quadrature=tn.Augmented())


def test_default_quadrature_is_sampled_and_its_missing_key_names_both_ways_out():
    # The default was `Augmented()`, which costs several times as much.
    with pytest.raises(ValueError, match=r"`key=jax.random.key\(0\)`.*`quadrature=tn.Augmented"):
        solve(regularizer=SPEED)
    assert solve(regularizer=SPEED, key=KEY).stats["penalty_evaluations"] == 1


@pytest.mark.parametrize("order", [0, -1, 2.0, True, "2", None])
def test_order_must_be_a_positive_integer(order):
    with pytest.raises((ValueError, TypeError), match="order"):
        tn.TotalDerivative(order=order)


@pytest.mark.parametrize("points", [0, 1.0, True])
def test_points_must_be_a_positive_integer(points):
    with pytest.raises((ValueError, TypeError), match="points"):
        tn.Sampled(points=points)


@pytest.mark.parametrize(
    ("regularizer", "message"),
    [
        (tn.TotalDerivative, r"`regularizer` must be.*Did you mean `TotalDerivative\(\.\.\.\)`"),
        (1.0, r"`regularizer` must be.*got 1\.0"),
        (3, r"`regularizer` must be.*got 3"),
        ([SPEED, tn.KineticEnergy], r"`regularizer` must be.*KineticEnergy\(\.\.\.\)"),
        ([], "`regularizer` is an empty pytree, without"),
        ({"a": None}, "`regularizer` is an empty pytree, without"),
    ],
)
def test_regularizer_that_is_none(regularizer, message):
    with pytest.raises((TypeError, ValueError), match=message):
        solve(regularizer=regularizer)


@pytest.mark.parametrize("quadrature", [tn.Augmented, tn.Sampled, 3, None])
def test_quadrature_that_is_none(quadrature):
    with pytest.raises(TypeError, match="`quadrature` must be a quadrature such as") as error:
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


@pytest.mark.parametrize("number", [float, jnp.asarray])
def test_first_step_in_the_wrong_direction_is_shown_as_a_number(number):
    # BUG, fixed: the message showed tracers.
    with pytest.raises(ValueError, match=r"got dt0=-0.1 from t0=0 to t1=1"):
        solve(dt0=number(-0.1), t1=number(1.0))


def test_first_step_of_zero_is_refused_unless_there_is_nowhere_to_go():
    # BUG, fixed: it was repeated until `max_steps`.
    for controller in (pid(1e-3), dfx.ConstantStepSize()):
        with pytest.raises(ValueError, match="`dt0` must not be zero"):
            solve(dt0=0.0, stepsize_controller=controller)
    assert solve(dt0=0.0, t1=0.0).result == dfx.RESULTS.successful
    # diffrax raises it to the least step.
    assert solve(dt0=0.0, stepsize_controller=pid(1e-3, dtmin=0.1)).result == dfx.RESULTS.successful


@pytest.mark.parametrize("name", ["rtol", "atol"])
def test_negative_tolerance_is_refused(name):
    controller = dfx.PIDController(**{"rtol": 1e-3, "atol": 1e-3, name: -1e-3})
    with pytest.raises(ValueError, match=f"`{name}` must not be negative, got -0.001"):
        solve(stepsize_controller=controller)


def test_solver_class_instead_of_an_instance():
    with pytest.raises(TypeError, match=r"`solver` must be an instance.*`Tsit5\(\)`"):
        solve(solver=dfx.Tsit5)


def test_adjoint_class_instead_of_an_instance():
    # Without the types that the tests check at run time, as users call it.
    with pytest.raises(TypeError, match=r"`adjoint` must be an instance.*`DirectAdjoint\(\)`"):
        inspect.unwrap(tn.diffeqsolve)(
            dfx.ODETerm(pendulum), TSIT5, 0.0, 1.0, 0.1, Y0, adjoint=dfx.DirectAdjoint
        )


@pytest.mark.parametrize("regularizer", [None, SPEED])
def test_function_instead_of_a_term(regularizer):
    # BUG, fixed: the message was about stochastic equations.
    with pytest.raises(TypeError, match=r"Wrap the vector field in `diffrax\.ODETerm`"):
        solve(terms=pendulum, regularizer=regularizer)


KINDS = [
    tn.KineticEnergy,
    tn.DirectionalDerivative,
    tn.JacobianFrobenius,
    tn.RNODE,
    lambda **where: tn.TotalDerivative(2, **where),
]


@pytest.mark.parametrize("kind", KINDS)
def test_where_must_be_a_function(kind):
    with pytest.raises(TypeError, match=r"`where` must be a function.*got 0"):
        kind(where=0)


@pytest.mark.parametrize("axis", [0.5, True])
def test_batch_axis_must_be_an_integer(axis):
    with pytest.raises((ValueError, TypeError), match="batch_axis"):
        tn.Sampled(batch_axis=axis)


@pytest.mark.parametrize("y0", [(), jnp.zeros((0, 2))])
def test_state_without_elements_is_named_instead_of_where(y0):
    # BUG, fixed: the message said "`where` selects nothing", though nobody had passed it.
    with pytest.raises(ValueError, match="`y0` has no elements"):
        solve(y0=y0, regularizer=SPEED, quadrature=tn.Augmented())


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
    for call in (run, eqx.filter_jit(run)):
        for controller in (fine, nested):
            message = "`rtol=1.4e-08` is below what float32 can resolve"
            with pytest.warns(UserWarning, match=message) as caught:
                call(controller)
            # BUG, fixed: it pointed into equinox.
            assert {w.filename for w in caught} == {__file__}


def test_tolerance_above_the_precision_does_not_warn():
    solve(stepsize_controller=pid(1e-12), t1=0.01, max_steps=100, throw=False)


def test_absolute_tolerance_alone_does_not_warn():
    # BUG, fixed: zero is a tolerance that many choose, since the absolute one decides then.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(stepsize_controller=dfx.PIDController(rtol=0.0, atol=1e-3))


@pytest.mark.parametrize(
    "given",
    [
        {"solver": "dopri5"},
        {"stepsize_controller": None},
        {"saveat": jnp.linspace(0.0, 1.0, 3)},
        {"saveat": dfx.SaveAt},
        {"event": lambda t, y, args, **others: t},
        {"adjoint": "direct"},
        {"key": 0},
        {"key": jax.random.split(jax.random.key(0), 3)},
        {"quadrature": tn.Augmented},
    ],
    ids=lambda given: next(iter(given)),
)
def test_wrong_arguments_are_named(given):
    # BUG, fixed: the errors were those of the internals that met them first.
    arguments = dict(terms=dfx.ODETerm(lambda t, y, args: -y), solver=dfx.Dopri5(), t0=0, t1=1)
    arguments |= dict(dt0=0.1, y0=jnp.ones(2)) | given
    with pytest.raises((TypeError, ValueError), match=f"`{next(iter(given))}`"):
        tn.diffeqsolve(**arguments)


@pytest.mark.parametrize(
    ("field", "note"),
    [
        (lambda t, y, args: jnp.ones(3), r"returns dy/dt of shape \(3,\) for `y0` of shape \(2,\)"),
        (lambda t, y, args: (y, y), r"returns dy/dt of shape \(\(2,\), \(2,\)\) for `y0`"),
        (lambda t, y, args: args(y), r"called as .* y of shape \(2,\) and `args=None`"),
        (lambda t, y: y, r"called as `vector_field\(t, y, args\)`"),
    ],
)
@pytest.mark.parametrize("regularizer", [None, SPEED])
def test_vector_field_that_does_not_fit_is_named(field, note, regularizer):
    # JAX speaks of broadcasting or of `NoneType`, and names no argument.
    with pytest.raises((TypeError, ValueError)) as caught:
        solve(terms=dfx.ODETerm(field), y0=np.ones(2), regularizer=regularizer, key=KEY)
    assert re.search(note, "".join(caught.value.__notes__))


def test_other_errors_get_no_note_about_the_vector_field():
    with pytest.raises(ValueError, match="needs `key=`") as caught:
        solve(regularizer=SPEED)
    assert not any("vector field" in note for note in getattr(caught.value, "__notes__", []))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y0": "a"}, "`y0` must be an array or a number, got 'a'"),
        ({"y0": {"x": print}}, r"`y0\['x'\]` must be an array or a number"),
        ({"t1": "1"}, "`t1` must be a number, got '1'"),
        ({"t1": np.ones(3)}, r"`t1` must be a single number, got an array of shape \(3,\)"),
        ({"stepsize_controller": pid(float("nan"))}, "`rtol` must not be NaN"),
    ],
)
def test_times_states_and_tolerances_must_be_numbers(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        solve(**options)


def test_batch_axis_of_a_single_sample_says_to_leave_it_out():
    # The ten lines solve a batch jointly. Models of diffrax solve one sample, under `jax.vmap`.
    weights = np.ones((2, 2))
    solve_one = lambda y0: solve(
        terms=dfx.ODETerm(lambda t, y, args: weights @ y),
        y0=y0,
        regularizer=SPEED,
        quadrature=tn.Sampled(batch_axis=0),
        key=KEY,
    )
    with pytest.raises(TypeError) as caught:
        jax.vmap(solve_one)(np.ones((4, 2)))
    assert any("under `jax.vmap`, leave `batch_axis` out" in n for n in caught.value.__notes__)
