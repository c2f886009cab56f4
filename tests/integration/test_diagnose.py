"""What is said of solves that fail."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn


CONTROLLER = dfx.PIDController(rtol=1e-6, atol=1e-6)


def solve(field, y0, t1=2.0, **options):
    return tn.diffeqsolve(
        dfx.ODETerm(field),
        dfx.Dopri5(),
        0.0,
        t1,
        None,
        y0,
        stepsize_controller=CONTROLLER,
        throw=False,
        **{"max_steps": 512, **options},
    )


def test_a_good_solve_is_called_so():
    diagnosis = tn.diagnose(solve(lambda t, y, args: -y, jnp.ones(2)))
    assert diagnosis.okay
    assert str(diagnosis) == "Solved: the sample reached the end."


def test_samples_that_blow_up_are_named_with_their_times():
    sol = jax.vmap(lambda y0: solve(lambda t, y, args: y**2, y0))(jnp.array([0.1, 1.0, 4.0]))
    diagnosis = tn.diagnose(sol)
    assert [f.sample for f in diagnosis.findings] == [(1,), (2,)]
    np.testing.assert_allclose([f.time for f in diagnosis.findings], [1.0, 0.25], rtol=1e-4)
    for finding in diagnosis.findings:
        assert "grows without bound" in finding.cause
        assert finding.slope == pytest.approx(finding.state**2, rel=1e-6)
    assert "sample 2 at t = 0.25" in str(diagnosis)
    # The other sample is unharmed.
    np.testing.assert_allclose(sol.ys[0], 0.125, rtol=1e-6)


def test_a_vector_field_of_nan_is_recognized():
    sol = solve(lambda t, y, args: jnp.sqrt(1 - y), jnp.array(3.0))
    (finding,) = tn.diagnose(sol).findings
    assert finding.sample == ()
    assert "met NaN" in finding.cause
    assert "vector field returns NaN" in finding.advice


def test_too_few_steps_are_recognized():
    sol = solve(lambda t, y, args: -1e4 * (y - jnp.cos(t)), jnp.array(1.0), max_steps=50)
    (finding,) = tn.diagnose(sol).findings
    assert "`max_steps` = 50" in finding.cause
    assert 0 < finding.time < 2
    assert 0 < finding.next_step < 0.01


def test_a_penalty_that_overflows_is_recognized():
    sol = solve(
        lambda t, y, args: 1e200 * jnp.cos(1e-5 * y),
        jnp.array(0.0),
        t1=1e-204,
        regularizer=tn.TotalDerivative(order=3),
        quadrature=tn.Augmented(),
    )
    assert sol.result == dfx.RESULTS.nonfinite
    (finding,) = tn.diagnose(sol).findings
    assert "penalty is not finite" in finding.cause


def test_long_lists_are_cut():
    sol = jax.vmap(lambda y0: solve(lambda t, y, args: y**2, y0))(jnp.linspace(1.0, 2.0, 6))
    diagnosis = tn.diagnose(sol, limit=2)
    assert diagnosis.num_unfinished == 6
    assert "and 4 more" in str(diagnosis)


def test_a_solution_of_diffrax_itself_is_understood_as_far_as_it_goes():
    sol = dfx.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: y**2),
        dfx.Dopri5(),
        0.0,
        2.0,
        0.1,
        jnp.array(1.0),
        stepsize_controller=CONTROLLER,
        max_steps=100,
        throw=False,
    )
    (finding,) = tn.diagnose(sol).findings
    assert np.isnan(finding.time)
    assert "tn.diffeqsolve" in finding.advice


def test_tracers_are_refused():
    @jax.jit
    def inside(y0):
        tn.diagnose(solve(lambda t, y, args: -y, y0))
        return y0

    with pytest.raises(TypeError, match=r"outside of `jax\.jit`"):
        inside(jnp.ones(2))
