"""The interface for habits from torchdiffeq."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn


TIMES = jnp.linspace(0.0, 2.0, 6)
Y0 = jnp.array([1.0, -2.0])


# The others differ from them in their coefficients alone.
QUICK = "adams", "adaptive_heun", "dopri5"


@pytest.mark.parametrize(
    "method",
    [pytest.param(x, marks=() if x in QUICK else pytest.mark.slow) for x in tn.compat.ADAPTIVE],
)
def test_adaptive_methods_by_name(method):
    tolerance = 1e-4 if method in ("adaptive_heun", "fehlberg2") else 1e-7
    ys = tn.compat.odeint(lambda t, y: -y, Y0, TIMES, method=method, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(ys, Y0 * np.exp(-TIMES)[:, None], rtol=0.01, atol=100 * tolerance)


@pytest.mark.parametrize(
    ("method", "error"), [("euler", 1e-2), ("midpoint", 1e-4), ("heun", 1e-4), ("rk4", 1e-8)]
)
def test_fixed_methods_by_name(method, error):
    ys = tn.compat.odeint(lambda t, y: -y, Y0, TIMES, method=method, step_size=0.01)
    np.testing.assert_allclose(ys, Y0 * np.exp(-TIMES)[:, None], atol=error)


def test_fixed_methods_step_from_time_to_time_by_default():
    ys = tn.compat.odeint(lambda t, y: -y, Y0, TIMES, method="euler")
    np.testing.assert_allclose(ys, Y0 * (0.6 ** jnp.arange(6.0))[:, None], rtol=1e-12)


def test_backward_in_time():
    ys = tn.compat.odeint(lambda t, y: -y, Y0, TIMES[::-1], rtol=1e-9)
    np.testing.assert_allclose(ys, Y0 * np.exp(TIMES)[:, None], rtol=1e-7)


def test_a_regularizer_adds_the_penalty():
    ys, penalty = tn.compat.odeint(
        lambda t, y: -y,
        Y0,
        TIMES,
        regularizer=tn.TotalDerivative(order=2),
        quadrature=tn.Augmented(),
    )
    assert ys.shape == (6, 2)
    np.testing.assert_allclose(penalty, np.mean(Y0**2) * (1 - np.exp(-4)) / 2, rtol=1e-6)


@pytest.mark.slow
def test_gradients_reach_the_parameters_of_a_module():
    class Decay(eqx.Module):
        rate: jax.Array

        def __call__(self, t, y):
            return -self.rate * y

    def last(module):
        return jnp.sum(tn.compat.odeint(module, Y0, TIMES)[-1])

    gradient = eqx.filter_grad(last)(Decay(jnp.array(0.5)))
    np.testing.assert_allclose(gradient.rate, -2 * np.sum(Y0) * np.exp(-1), rtol=1e-6)


def test_unknown_methods_are_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"`method` 'dopri' is not known.*'dopri5'"):
        tn.compat.odeint(lambda t, y: -y, Y0, TIMES, method="dopri")


def test_times_must_be_a_vector():
    with pytest.raises(ValueError, match="`t` must be a vector"):
        tn.compat.odeint(lambda t, y: -y, Y0, jnp.array(1.0))


def test_adaptive_methods_have_no_step_size():
    with pytest.raises(ValueError, match="`step_size` is for fixed methods"):
        tn.compat.odeint(lambda t, y: -y, Y0, TIMES, step_size=0.1)


@pytest.mark.slow
def test_step_size_may_be_among_the_options_as_in_torchdiffeq():
    # BUG, fixed: `options` was taken for keywords of the solve.
    solve = lambda **step: tn.compat.odeint(lambda t, y: -y, Y0, TIMES, method="rk4", **step)
    expected = solve(step_size=0.1)
    np.testing.assert_array_equal(solve(options=dict(step_size=0.1)), expected)
    with pytest.raises(ValueError, match=r"`options` may have .*got \['perturb'\]"):
        solve(options=dict(perturb=True))
    with pytest.raises(ValueError, match="`step_size` is given twice"):
        solve(step_size=0.1, options=dict(step_size=0.1))


@pytest.mark.slow
def test_default_tolerances_do_not_warn_in_single_precision():
    # BUG, fixed: the default of `rtol` was below what single precision can resolve.
    times, y0 = TIMES.astype(jnp.float32), Y0.astype(jnp.float32)
    ys = tn.compat.odeint(lambda t, y: -y, y0, times)
    assert ys.dtype == jnp.float32
    np.testing.assert_allclose(ys, Y0 * np.exp(-TIMES)[:, None], rtol=1e-4)


def test_warnings_point_to_the_line_that_called():
    times, y0 = TIMES.astype(jnp.float32), Y0.astype(jnp.float32)
    with pytest.warns(UserWarning, match="below what float32 can resolve") as caught:
        tn.compat.odeint(lambda t, y: -y, y0, times, rtol=1e-8, atol=1e-4)
    assert {w.filename for w in caught} == {__file__}


@pytest.mark.slow
def test_default_quadrature_is_sampled():
    solve = lambda **key: tn.compat.odeint(
        lambda t, y: 0 * y + 2.0, Y0, TIMES, regularizer=tn.KineticEnergy(), **key
    )
    with pytest.raises(ValueError, match=r"`key=jax.random.key\(0\)`"):
        solve()
    np.testing.assert_allclose(solve(key=jax.random.key(0))[1], 8.0, rtol=1e-6)


def test_a_vector_field_of_three_arguments_says_how_to_pass_it():
    with pytest.raises(TypeError, match=r"`func\(t, y\)`.*pass `lambda t, y: f\(t, y, args\)`"):
        tn.compat.odeint(lambda t, y, args: -y, Y0, TIMES)
