"""What goes wrong in a solve is told."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn

from .problems import KEY, pendulum, pid, Y0
from tests.solve.test_errors import solve, SPEED


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
