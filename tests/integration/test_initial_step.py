"""The first step, against the formulas written down once more."""

import functools

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import taynode as tn

from .problems import distance, pendulum, pid, Tally, Y0


TALLY = Tally()
RELEASED = functools.partial(tn.initial_step_size, variant="released")


def reference(field, t0, t1, y0, *, order, rtol, atol, variant):
    """Hairer, Norsett and Wanner, section II.4, for a vector; or the released code's variant."""
    y0 = np.asarray(y0, float)
    sign = 1.0 if t1 > t0 else -1.0
    size = lambda x: np.linalg.norm(x) / (1 if variant == "released" else np.sqrt(x.size))
    scale = atol + rtol * np.abs(y0)
    f0 = np.asarray(field(t0, y0))
    d0, d1 = size(y0 / scale), size(f0 / scale)
    h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    if variant == "hairer":  # as in SciPy
        h0 = min(h0, abs(t1 - t0))
    f1 = np.asarray(field(t0 + sign * h0, y0 + sign * h0 * f0))
    d2 = size((f1 - f0) / scale) / h0
    largest = d1 + d2 if variant == "released" else max(d1, d2)
    h1 = max(1e-6, 1e-3 * h0) if largest <= 1e-15 else (0.01 / largest) ** (1 / order)
    return sign * min(100 * h0, h1)


def swing(t, y):
    return np.stack([y[1], -4 * np.sin(y[0]) - 0.25 * y[1] + np.cos(3 * t)])


# Name: field, the same for numpy, times, initial state, rtol, atol.
CASES = {
    "pendulum": (pendulum, swing, 0.0, 1.0, [1.2, 0.3], 1e-6, 1e-8),
    "backward in time": (pendulum, swing, 1.0, -2.0, [1.2, 0.3], 1e-6, 1e-8),
    "loose": (pendulum, swing, 0.0, 1.0, [1.2, 0.3], 1e-1, 1e-1),
    "small slope, large acceleration": (
        lambda t, y, args: 1e-3 * jnp.cos(1e5 * y),
        lambda t, y: 1e-3 * np.cos(1e5 * y),
        0.0,
        1.0,
        [0.3, 2.0],
        1e-6,
        1e-8,
    ),
    "zero field": (
        lambda t, y, args: jnp.zeros_like(y),
        lambda t, y: np.zeros_like(y),
        0.0,
        1.0,
        [1.2, 0.3],
        1e-6,
        1e-8,
    ),
    "zero state": (
        lambda t, y, args: jnp.cos(y + t),
        lambda t, y: np.cos(y + t),
        0.0,
        1.0,
        [0.0, 0.0],
        1e-6,
        1e-8,
    ),
    "zero state and field": (
        lambda t, y, args: -y,
        lambda t, y: -y,
        0.0,
        1.0,
        [0.0, 0.0],
        1e-6,
        1e-8,
    ),
    "nothing but growth with time": (
        lambda t, y, args: 0 * y + t,
        lambda t, y: 0 * y + t,
        0.0,
        5.0,
        [1.0, 1.0],
        1e-6,
        1e-8,
    ),
}


@pytest.mark.parametrize("variant", ["hairer", "released"])
@pytest.mark.parametrize("case", CASES)
def test_first_step_is_that_of_the_formulas(case, variant):
    field, in_numpy, t0, t1, y0, rtol, atol = CASES[case]
    for order in (2, 5):
        options = dict(order=order, rtol=rtol, atol=atol, variant=variant)
        step = tn.initial_step_size(dfx.ODETerm(field), t0, t1, jnp.array(y0), **options)
        expected = reference(in_numpy, t0, t1, y0, **options)
        np.testing.assert_allclose(step, expected, rtol=1e-12)
        assert step.dtype == jnp.float64


def test_variants_differ_by_the_norm_and_the_sum():
    """The released norm grows with the size of the state; the other one does not."""
    field = dfx.ODETerm(lambda t, y, args: jnp.cos(y))
    options = dict(order=5, rtol=1e-6, atol=1e-6)
    steps = {
        (variant, n): tn.initial_step_size(
            field, 0.0, 1.0, jnp.full(n, 0.7), variant=variant, **options
        )
        for variant in ("hairer", "released")
        for n in (1, 100)
    }
    np.testing.assert_allclose(steps["hairer", 1], steps["hairer", 100], rtol=1e-12)
    np.testing.assert_allclose(
        steps["released", 1], 10 ** (1 / 5) * steps["released", 100], rtol=1e-12
    )


def test_first_step_of_a_pytree_is_that_of_its_leaves_in_a_row():
    tree = {"a": jnp.array([1.2]), "b": (jnp.array([[0.3]]),)}

    def field(t, y, args):
        slope = pendulum(t, jnp.concatenate([y["a"], y["b"][0][0]]), args)
        return {"a": slope[:1], "b": (slope[1:][None],)}

    options = dict(order=5, rtol=1e-6, atol=1e-8)
    for variant in ("hairer", "released"):
        steps = [
            tn.initial_step_size(dfx.ODETerm(f), 0.0, 1.0, y, variant=variant, **options)
            for f, y in [(field, tree), (pendulum, jnp.array([1.2, 0.3]))]
        ]
        np.testing.assert_allclose(*steps, rtol=1e-12)


def test_first_step_in_single_precision():
    single = jnp.float32
    for variant in ("hairer", "released"):
        options = dict(order=3, rtol=1e-3, atol=1e-4, variant=variant)
        for t0, t1 in [(0.0, 1.0), (1.0, 0.0)]:
            step = tn.initial_step_size(
                dfx.ODETerm(pendulum),
                single(t0),
                single(t1),
                jnp.array([1.2, 0.3], single),
                **options,
            )
            assert step.dtype == single
            expected = reference(swing, t0, t1, [1.2, 0.3], **options)
            # The difference of two slopes loses digits.
            np.testing.assert_allclose(step, expected, rtol=1e-3)


def test_first_step_uses_the_given_norm_args_and_slope():
    def field(t, y, args):
        TALLY.note(t)
        return args * pendulum(t, y, None)

    options = dict(order=2, rtol=1e-6, atol=1e-6)
    term, y0, args = dfx.ODETerm(field), jnp.array([1.2, 0.3]), jnp.array(3.0)
    mean = tn.initial_step_size(term, 0.0, 1.0, y0, args, **options)
    TALLY.take()
    options["norm"] = optx.max_norm
    step = tn.initial_step_size(term, 0.0, 1.0, y0, args, **options)
    assert len(TALLY.take()) == 2
    assert step < mean
    slope = 3.0 * pendulum(0.0, y0, None)
    assert tn.initial_step_size(term, 0.0, 1.0, y0, args, slope=slope, **options) == step
    assert len(TALLY.take()) == 1


def test_first_step_has_no_gradient():
    def step(y0, args):
        field = lambda t, y, args: args * pendulum(t, y, None)
        return tn.initial_step_size(
            dfx.ODETerm(field), 0.0, 1.0, y0, args, order=5, rtol=1e-6, atol=1e-8
        )

    gradients = jax.grad(step, (0, 1))(Y0, jnp.array(3.0))
    assert distance(gradients, (jnp.zeros(2), jnp.array(0.0))) == 0


def test_first_step_of_a_field_that_is_not_finite_is_finite():
    """So that the solve fails, with a message."""
    for value in (jnp.nan, jnp.inf):
        term = dfx.ODETerm(lambda t, y, args: jnp.full_like(y, args))
        step = tn.initial_step_size(term, 0.0, 1.0, Y0, value, order=5, rtol=1e-6, atol=1e-8)
        assert jnp.isfinite(step)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_first_step_moves_time(dtype):
    # BUG, fixed: for a zero field it was 1e-6, which is lost in rounding if `t0` is large: steps
    # of length zero were accepted for ever, up to `max_steps`.
    t0 = dtype(64.0 if dtype is jnp.float32 else 1e11)
    field = dfx.ODETerm(lambda t, y, args: jnp.zeros_like(y))
    options = dict(order=5, rtol=1e-3, atol=1e-3)
    step = tn.initial_step_size(field, t0, t0 + 8, jnp.ones(2, dtype), **options)
    assert t0 + step > t0


def test_first_step_is_no_longer_than_the_interval_when_solving():
    """Problems so easy that the step passes the end are solved in one step."""
    sol = tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: jnp.ones_like(y)),
        dfx.Tsit5(),
        0.0,
        1e-3,
        None,
        Y0,
        stepsize_controller=pid(1e-2),
    )
    assert sol.stats["num_steps"] == 1
    np.testing.assert_allclose(sol.ys[0], Y0 + 1e-3, rtol=1e-12)


def solve(lib, dt0, t0=0.0, t1=2.0):
    return lib.diffeqsolve(
        dfx.ODETerm(pendulum),
        dfx.Dopri5(),
        jnp.array(t0),
        jnp.array(t1),
        dt0,
        Y0,
        stepsize_controller=dfx.PIDController(rtol=1e-6, atol=1e-8),
    )


@pytest.mark.parametrize(("dt0", "variant"), [(None, "hairer"), (RELEASED, "released")])
def test_solve_starts_with_the_first_step(dt0, variant):
    """As if it had been given as a number, but for two evaluations; forward and backward."""
    for t0, t1 in [(0.0, 2.0), (2.0, 0.0)]:
        step = reference(swing, t0, t1, [1.2, 0.0], order=5, rtol=1e-6, atol=1e-8, variant=variant)
        given = solve(dfx, jnp.array(step), t0, t1)
        chosen = solve(tn, dt0, t0, t1)
        assert chosen.stats["num_steps"] == given.stats["num_steps"]
        np.testing.assert_allclose(chosen.ys, given.ys, rtol=1e-11)


def test_variant_must_exist():
    with pytest.raises(ValueError, match=r"`variant` must be one of.*'hairer'.*'released'.*'x'"):
        tn.initial_step_size(
            dfx.ODETerm(pendulum), 0.0, 1.0, Y0, order=5, rtol=1e-6, atol=1e-8, variant="x"
        )


class Anonymous(dfx.Tsit5):
    """A solver that does not tell its order."""

    def order(self, terms):
        return None


def test_first_step_uses_the_order_that_the_controller_is_told():
    # BUG, fixed: the solver was asked for its order, whatever the controller says.
    controller = pid(1e-6, error_order=5)
    run = lambda solver: tn.diffeqsolve(
        dfx.ODETerm(pendulum), solver, 0.0, 2.0, None, Y0, stepsize_controller=controller
    )
    assert run(Anonymous()).result == dfx.RESULTS.successful


def test_the_first_step_is_chosen_within_the_interval():
    # BUG, fixed: the vector field was evaluated at t = 10, where it is not defined.
    until_one = lambda t, y, args: -jnp.sqrt(1 - t) * jnp.ones_like(y)
    step = tn.initial_step_size(
        dfx.ODETerm(until_one), 0.0, 1.0, 1e3 * jnp.ones(2), order=5, rtol=1e-3, atol=1e-3
    )
    assert step > 0.1


def test_the_first_step_takes_integer_times_and_numbers_as_states():
    # BUG, fixed: both raised errors of NumPy.
    options = dict(order=5, rtol=1e-3, atol=1e-6)
    decay = dfx.ODETerm(lambda t, y, args: -y)
    expected = tn.initial_step_size(decay, 0.0, 1.0, jnp.ones(()), **options)
    assert tn.initial_step_size(decay, 0, 1, 1.0, **options) == expected
