"""Sampled times: unbiased, stratified, read where the solution is, and penalized where it went."""

import functools

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optimistix as optx
import pytest

import taynode as tn

from . import reference as ref
from .reference import ARGS, close, FIELD, KEY, LENGTH, NUM_ROWS, T0, T1, Y0


FIXED = {"dt0": 0.07, "stepsize_controller": dfx.ConstantStepSize(), "max_steps": 32}
# A batch of three times the first row.
EQUAL = jnp.broadcast_to(Y0[:1], Y0.shape)


@functools.cache
def exact(equal_rows):
    y0 = EQUAL if equal_rows else Y0
    return float(jax.jit(lambda: ref.penalty(ref.RATES["r2"], FIELD, ARGS, y0, T0, T1))())


def estimates(batch_axis):
    """A function for many estimates of the same penalty, from two points each."""

    def estimate(y0, key):
        quadrature = tn.Sampled(points=2, batch_axis=batch_axis)
        return ref.solve(tn.TotalDerivative(2), quadrature, y0=y0, key=key, **FIXED).stats[
            "penalty"
        ]

    return jax.jit(jax.vmap(estimate, in_axes=(None, 0)))


# --- the estimate


def test_the_mean_over_keys_is_the_integral_and_rows_reduce_the_variance():
    keys = jr.split(KEY, 400)
    variances = {}
    for batch_axis in (None, 0):
        compute = estimates(batch_axis)
        for equal_rows in (False, True):
            values = compute(EQUAL if equal_rows else Y0, keys)
            error = np.std(values) / np.sqrt(len(values))
            assert abs(np.mean(values) - exact(equal_rows)) < 4 * error
            assert error < 0.01 * exact(equal_rows)
            variances[batch_axis, equal_rows] = np.var(values)
        # The key is all there is to chance.
        repeated = compute(Y0, jnp.concatenate([keys[:200], keys[:200]]))
        close(repeated[:200], repeated[200:], 0)
    # With three equal rows, it is a mean over three times as many times.
    assert 0.2 < variances[0, True] / variances[None, True] < 0.5


# Those of each row are part of `test_penalties.py`, backward in time.
@pytest.mark.parametrize("batch_axis", [None, pytest.param(0, marks=pytest.mark.slow)])
def test_many_points_give_the_integral(batch_axis):
    quadrature = tn.Sampled(points=256, batch_axis=batch_axis)
    stats = ref.solve(tn.TotalDerivative(2), quadrature).stats
    close(stats["penalty"], exact(False), 1e-3)
    assert stats["penalty_evaluations"] == 256


# --- readings


class Seen(tn.AbstractRegularizer):
    """The time and the state of each row, in places of their own."""

    def rate(self, vector_field, t, y, args, state):
        rows = jax.nn.one_hot(jnp.round(y[:, 2]).astype(int), NUM_ROWS, dtype=y.dtype)
        readings = jnp.concatenate([jnp.full_like(y[:, :1], t), y], axis=1)
        return vector_field(t, y, args), rows.T @ readings / len(y)


SOLVERS = {
    "Tsit5": dfx.Tsit5(),
    "Heun": dfx.Heun(),
    "Dopri8": dfx.Dopri8(),
    "Euler": dfx.Euler(),
    "ReversibleHeun": dfx.ReversibleHeun(),
    "HalfSolver": dfx.HalfSolver(dfx.Bosh3()),
    "Kvaerno3": dfx.Kvaerno3(),
    "RK4": tn.solvers.RK4(),
    "CashKarp": tn.solvers.CashKarp(),
    "OwrenZennaro5": tn.solvers.OwrenZennaro5(),
    "TanakaYamashita7": tn.solvers.TanakaYamashita7(),
}
QUICK = ["Tsit5", "HalfSolver"]


# `HalfSolver` failed: it is an instance of the class of the solver inside, but lacks its fields.
@pytest.mark.parametrize("direction", [1, pytest.param(-1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("batch_axis", [0, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SOLVERS],
)
def test_readings_are_the_dense_solution(name, batch_axis, direction):
    solver = SOLVERS[name]
    t0, t1 = (T0, T1) if direction == 1 else (T1, T0)
    fixed = FIXED | {"dt0": 0.07 * direction}
    if name == "Kvaerno3":
        # Its nonlinear solver takes its tolerances from the control.
        fixed = {"tol": 1e-6, "max_steps": 256}
    quadrature = tn.Sampled(points=1, batch_axis=batch_axis)
    solved = ref.solve(
        Seen(),
        quadrature,
        t0=t0,
        t1=t1,
        solver=solver,
        saveat=dfx.SaveAt(dense=True),
        **fixed,
    )
    readings = solved.stats["penalty"] * (NUM_ROWS / LENGTH)
    times, states = readings[:, 0], readings[:, 1:]
    assert len(np.unique(np.round(times, 9))) == (1 if batch_axis is None else NUM_ROWS)
    dense = jax.vmap(solved.evaluate)(times)
    close(states, np.asarray(dense)[np.arange(3), np.arange(3)], 1e-12, atol=1e-12)


def row_penalty(batch_axis, field, y0, **options):
    quadrature = tn.Sampled(points=3, batch_axis=batch_axis)
    regularizer = {"r2": tn.TotalDerivative(2), "directional": tn.DirectionalDerivative()}
    penalties = ref.solve(regularizer, quadrature, field=field, y0=y0, **FIXED, **options)
    return np.array([penalties.stats["penalty"][name] for name in regularizer])


@functools.cache
def first_axis():
    return row_penalty(0, FIELD, Y0)


@pytest.mark.slow
@pytest.mark.parametrize("batch_axis", [1, pytest.param(-1, marks=pytest.mark.slow)])
def test_the_batch_axis_may_be_any(batch_axis):
    # With the same key rows have the same times, so that estimates are equal.
    field = lambda t, y, args: FIELD(t, y.T, args).T
    close(row_penalty(batch_axis, field, Y0.T), first_axis(), 1e-13)


def split(y):
    """A pytree whose leaves have their rows in axes of different numbers, all of them the last."""
    return {"pair": y[:, :2].T[None], "number": y[:, 2]}


def merge(tree):
    return jnp.concatenate([tree["pair"][0].T, tree["number"][:, None]], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        # These read the whole batch, and take from it the rows.
        {"event": dfx.Event(lambda t, y, args, **others: t > 10.0)},
        pytest.param({"adjoint": dfx.BacksolveAdjoint()}, marks=pytest.mark.slow),
    ],
)
def test_pytrees_with_the_batch_in_the_last_axis(options):
    field = lambda t, y, args: split(FIELD(t, merge(y), args))
    close(row_penalty(-1, field, split(Y0), **options), first_axis(), 1e-13)


def test_a_state_that_is_a_single_number():
    # K of z' = 3, whatever the time.
    solved = ref.solve(
        tn.KineticEnergy(), tn.Sampled(2), field=lambda t, y, args: 3 + 0 * y, y0=1.0
    )
    close(solved.stats["penalty"], 9 * LENGTH, 1e-14)


# --- events and failures


ENDS = {
    "root": dfx.Event(lambda t, y, args, **others: t - 0.543, optx.Newton(1e-12, 1e-12)),
    "boolean": dfx.Event(lambda t, y, args, **others: t > 0.543),
}


@pytest.mark.parametrize(
    ("batch_axis", "end"),
    [(None, "root"), (0, "boolean"), pytest.param(0, "root", marks=pytest.mark.slow)],
)
def test_an_event_ends_the_charge(batch_axis, end):
    points = 128
    solved = ref.solve(
        tn.KineticEnergy(),
        tn.Sampled(points, batch_axis),
        field=lambda t, y, args: jnp.full_like(y, 3.0),
        **FIXED,
        event=ENDS[end],
    )
    stop = solved.ts[0]
    assert 0.543 - 1e-9 < stop < 0.543 + (1e-9 if end == "root" else 0.07)
    # The rate is 9 before the end; in one part of the interval it may or may not be penalized.
    assert abs(solved.stats["penalty"] - 9 * (stop - T0)) <= 9 * LENGTH / points


def test_a_failed_solve_is_charged_up_to_its_failure():
    points = 128
    solved = ref.solve(
        tn.KineticEnergy(),
        tn.Sampled(points, batch_axis=0),
        field=lambda t, y, args: jnp.full_like(y, 3.0),
        **FIXED | {"max_steps": 5},
        throw=False,
    )
    assert solved.result == dfx.RESULTS.max_steps_reached
    # diffrax makes equal steps that end at `t1`, which are shorter than asked for.
    assert abs(solved.stats["penalty"] - 9 * LENGTH * 5 / 13) <= 9 * LENGTH / points


# --- misuse


# `Augmented` can do it, if there is an event.
@pytest.mark.parametrize("batch_axis", [pytest.param(None, marks=pytest.mark.slow), 0])
def test_an_endless_interval_is_refused(batch_axis):
    event = dfx.Event(lambda t, y, args, **others: t > 0.5)
    with pytest.raises(Exception, match="`t1`"):
        ref.solve(tn.KineticEnergy(), tn.Sampled(2, batch_axis), t1=np.inf, event=event, **FIXED)


@pytest.mark.parametrize(
    ("batch_axis", "y0", "message"),
    [
        (2, Y0, r"`batch_axis=2` does not exist in `y0`.*\(3, 3\)"),
        (-3, Y0, "`batch_axis=-3` does not exist"),
        (1, {"a": Y0, "b": Y0[0]}, r"does not exist in `y0\['b'\]`"),
        (0, {"a": Y0, "b": Y0[:2]}, r"different sizes .*\[2, 3\]"),
    ],
)
def test_a_batch_axis_that_is_none_is_refused(batch_axis, y0, message):
    with pytest.raises(ValueError, match=message):
        ref.solve(
            tn.KineticEnergy(),
            tn.Sampled(batch_axis=batch_axis),
            field=lambda t, y, args: y,
            y0=y0,
        )


def test_args_per_row_are_refused():
    with pytest.raises(ValueError, match=r"`tn\.PerRow`"):
        ref.solve(
            tn.KineticEnergy(),
            tn.Sampled(batch_axis=0),
            field=lambda t, y, args: y * args,
            args=jnp.ones((3, 1)),
        )


@pytest.mark.parametrize("regularizer", [tn.KineticEnergy(), tn.JacobianFrobenius()])
def test_the_key_is_asked_for(regularizer):
    with pytest.raises(ValueError, match="`key="):
        ref.solve(regularizer, tn.Sampled(), key=None)
    if isinstance(regularizer, tn.JacobianFrobenius):
        with pytest.raises(ValueError, match="`key="):
            ref.solve(regularizer, tn.Augmented(), key=None)


@pytest.mark.parametrize("points", [0, -1, True])
def test_points_are_a_positive_integer(points):
    with pytest.raises(ValueError, match="`points`"):
        tn.Sampled(points=points)
