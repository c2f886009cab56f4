"""Solves that fail: they end as diffrax's do, and the error names the likely cause."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn
from benchmarks.counting import count_primitives
from tests.solve.test_errors import solve, SPEED

from .problems import KEY, pid


AUGMENTED = dict(regularizer=SPEED, quadrature=tn.Augmented())


def failing(t, y, args):
    """What happens to the state depends on the argument."""
    late = t > 0.5
    choices = {
        "works": -y,
        "not a number": jnp.where(late, jnp.nan, -y),
        "blows up": y**2,
        "wild": jnp.sin(1e5 * t) * jnp.ones_like(y),
    }
    return jnp.select([args == i for i in range(len(FAILURES))], list(choices.values()))


# The cause that the error names.
FAILURES = {
    "works": None,
    "not a number": "met NaN or infinity",
    "blows up": "time stood still",
    "wild": "too wild for this tolerance",
}


def fail(lib, which, *, throw, **options):
    """From 1 at 0 towards 2; `y' = y^2` has a pole at 1."""
    return lib.diffeqsolve(
        dfx.ODETerm(failing),
        dfx.Tsit5(),
        0.0,
        2.0,
        0.01,
        jnp.array([1.0, 0.5]),
        jnp.asarray(which),
        stepsize_controller=pid(1e-4),
        max_steps=300,
        throw=throw,
        **options,
    )


def test_failures_raise_with_the_words_of_diffrax_and_a_likely_cause():
    for i, cause in enumerate(FAILURES.values()):
        if cause is None:
            fail(tn, i, throw=True, **AUGMENTED)
            continue
        with pytest.raises(Exception, match=f"taynode: .*{cause}") as error:
            jax.block_until_ready(fail(tn, i, throw=True, **AUGMENTED))
        message = str(error.value)
        assert dfx.RESULTS[dfx.RESULTS.max_steps_reached] in message
        assert "`tn.diagnose`" in message


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(AUGMENTED, id="augmented"),
        pytest.param(dict(regularizer=SPEED, key=KEY), id="sampled"),
    ],
)
def test_failures_are_returned_sample_by_sample_as_diffrax_returns_them(options):
    # BUG, fixed: adaptive solves whose steps became too small ended in `dt_min_reached`, where
    # diffrax goes on to `max_steps`.
    run = lambda lib, **options: jax.vmap(lambda i: fail(lib, i, throw=False, **options))(
        jnp.arange(len(FAILURES))
    )
    plain, sol = run(dfx), run(tn, **options)
    np.testing.assert_array_equal(sol.result._value, plain.result._value)
    np.testing.assert_array_equal(sol.stats["num_steps"], plain.stats["num_steps"])
    np.testing.assert_allclose(sol.ts, plain.ts, rtol=1e-12)
    point = sol.stats["last_point"]
    # The end, the first NaN, the pole; and somewhere.
    np.testing.assert_allclose(point.time[:3], [2.0, 0.5, 1.0], atol=1e-3)
    assert 0 < point.time[3] < 2
    np.testing.assert_array_equal(sol.ts[:, 0], point.time)
    y = np.asarray(sol.ys[:, 0])
    np.testing.assert_allclose(point.state, np.sqrt(np.mean(y**2, axis=-1)), rtol=1e-12)
    np.testing.assert_allclose(point.slope[2], np.sqrt(np.mean(y[2] ** 4)), rtol=1e-10)
    assert [f.sample for f in tn.diagnose(sol).findings] == [(1,), (2,), (3,)]
    # Counters are those of each sample alone.
    alone = fail(tn, 3, throw=False, **options)
    assert alone.stats["nfe"] == sol.stats["nfe"][3]


def test_solves_that_do_not_throw_compile_one_more_evaluation_at_most():
    # BUG, fixed: second derivatives at the last point were compiled into each training step.
    def primitives(throw):
        terms = dfx.ODETerm(lambda t, y, args: jnp.sinh(y))
        run = lambda y0: solve(terms=terms, y0=y0, throw=throw)
        return count_primitives(lambda y0: eqx.filter(run(y0), eqx.is_array), jnp.ones(2))

    with_point, without = primitives(throw=False), primitives(throw=True)
    assert with_point["sinh"] <= without["sinh"] + 1
    assert with_point["cosh"] == 0


# NaN.


STEPS = {
    "adaptive": ({}, "met NaN or infinity"),
    "fixed": (
        dict(dt0=0.1, stepsize_controller=dfx.ConstantStepSize()),
        "the state is NaN or infinite",
    ),
}


def root(t, y, args):
    """Of a negative number, if the argument says so."""
    return jnp.where(args, jnp.sqrt(0.5 - y), -y)


@pytest.mark.parametrize("steps", STEPS)
def test_nan_is_reported_as_what_it_is(steps):
    # BUG, fixed: NaN in `y0` was answered with the advice to raise the weight of the regularizer,
    # or with "the solve went well", and `diagnose` found the state fine.
    options, of_field = STEPS[steps]
    regularized = dict(regularizer=tn.KineticEnergy(), quadrature=tn.Augmented())
    for y0, args, cause in (
        (jnp.array([1.0, jnp.nan]), jnp.array(False), "the state is NaN or infinite"),
        (jnp.ones(2), jnp.array(True), of_field),
    ):
        problem = dict(terms=dfx.ODETerm(root), y0=y0, args=args, max_steps=50, **options)
        sol = solve(throw=False, **problem, **regularized)
        (finding,) = tn.diagnose(sol).findings
        assert cause in finding.cause
        with pytest.raises(Exception, match=f"taynode: .*{cause}"):
            jax.block_until_ready(solve(**problem, **regularized))
        # diffrax calls fixed steps of NaN successful, and so does the solve without a regularizer.
        plain = solve(throw=False, **problem)
        assert plain.result == solve(dfx, throw=False, **problem).result
        assert cause in str(tn.diagnose(plain))


@pytest.mark.slow
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
            quadrature=tn.Augmented(),
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
    sol = solve(saveat=saveat, throw=False, **AUGMENTED, **options)
    assert sol.result == plain.result == dfx.RESULTS.max_steps_reached
    np.testing.assert_allclose(sol.ys, plain.ys, rtol=1e-12)
    assert 0 < np.isfinite(sol.ts).sum() < 5


@pytest.mark.slow
def test_failure_with_backsolve_returns_what_was_reached():
    # BUG, fixed: output at the end was looked for in the last place, where it is not if a solve
    # ended before; and one that was added for the penalty was returned instead of the user's.
    times = jnp.array([0.3, 0.7, 0.8])
    backsolve = dict(throw=False, adjoint=dfx.BacksolveAdjoint())
    saveat = dfx.SaveAt(ts=times)
    sol = fail(tn, 1, saveat=saveat, **backsolve, **AUGMENTED)
    np.testing.assert_array_equal(sol.ts, fail(dfx, 1, saveat=saveat, **backsolve).ts)
    assert np.isfinite(sol.stats["penalty"])
    sol = fail(tn, 1, saveat=dfx.SaveAt(ts=times, t1=True), **backsolve)
    np.testing.assert_allclose(sol.stats["last_point"].time, 0.5, atol=1e-6)


def test_vector_field_without_derivatives_can_be_solved_without_throwing():
    # BUG, fixed: derivatives at the last point were taken even if nothing was regularized, and a
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
    options = dict(dt0=0.5, regularizer=regularizer, quadrature=tn.Augmented())
    sol = solve(terms=dfx.ODETerm(field), **options)
    assert sol.ys.shape == (1, 2)
    np.testing.assert_allclose(sol.stats["penalty"], penalty, rtol=1e-12)


def test_vector_field_whose_result_is_of_lower_precision():
    # BUG, fixed: diffrax converts what the vector field returns to the type of the state; the
    # penalty was then of a lower precision than the state, which solvers cannot mix.
    terms = dfx.ODETerm(lambda t, y, args: jnp.cos(y.astype(jnp.float32)))
    plain = solve(dfx, terms=terms)
    sol = solve(terms=terms, regularizer=tn.KineticEnergy(), quadrature=tn.Augmented())
    np.testing.assert_allclose(sol.ys, plain.ys, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Complex dtype support in Diffrax:UserWarning")
def test_complex_state():
    # BUG, fixed: a complex state next to a real penalty is more than Runge-Kutta methods can do.
    terms = dfx.ODETerm(lambda t, y, args: 1j * y)
    sol = solve(terms=terms, y0=jnp.ones(2, complex), **AUGMENTED)
    np.testing.assert_allclose(sol.stats["penalty"], 1.0, rtol=1e-2)
