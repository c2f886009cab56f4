"""Trial steps at random points of a path: closed forms, and means over many points."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optimistix as optx
import pytest

import taynode as tn
from tests.quadrature.reference import close

from .test_steps import ATOL, BOTH, CONTROL, field, RTOL, solve, Y0


# A step of a linear equation, whose error estimate is that of Heun's and Euler's method.
T1, RATE, TOLERANCE = 2.0, 1.3, 1e-3
DECAY = dfx.ODETerm(lambda t, y, rate: -rate * y)
FINE = dict(t0=0.0, t1=T1, dt0=1e-3, max_steps=None)


def decayed(regularizer, rate, key, **options):
    """The penalty of y' = - rate y from 1, on many small steps."""
    return tn.diffeqsolve(
        DECAY, dfx.Heun(), y0=jnp.array([1.0]), args=rate, regularizer=regularizer, key=key,
        quadrature=tn.Sampled(), **(FINE | dict(max_steps=4096) | options),
    ).stats["penalty"]  # fmt: skip


def drawn(key):
    """The time that a key draws."""
    return T1 * jr.uniform(jr.split(key)[0], (1,))[0]


def length_at(t, rate):
    """The length of a trial step."""
    y = jnp.exp(-rate * t)[None]
    return tn.initial_step_size(
        DECAY, t, T1, y, rate, order=2, rtol=TOLERANCE, atol=TOLERANCE
    )  # fmt: skip


def error_at(t, rate, h):
    """The estimate h^2 rate^2 y / 2 in units of the tolerance."""
    y = jnp.exp(-rate * t)
    return 0.5 * (h * rate) ** 2 * y / (TOLERANCE * (1 + y))


ERROR = tn.ErrorEstimate(rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_error_of_a_trial_step_has_a_closed_form_and_so_has_its_gradient(seed):
    key = jr.key(seed)
    value, gradient = jax.jit(jax.value_and_grad(lambda a: decayed(ERROR, a, key)))(RATE)
    t = drawn(key)
    # Its length has no gradient.
    h = length_at(t, RATE)
    expected = jax.value_and_grad(lambda a: T1 * error_at(t, a, h))(RATE)
    close(jnp.stack([value, gradient]), jnp.stack(expected), 1e-5, 1e-5 * float(value))


def test_a_trial_step_is_an_unbiased_estimate_of_the_integral():
    """The integral of the error over the path, by the midpoint rule; and the same of gradients."""
    keys = jr.split(jr.key(0), 2000)
    coarse = lambda a, key: decayed(ERROR, a, key, dt0=0.05, max_steps=64)
    found = jax.jit(jax.vmap(jax.value_and_grad(coarse), (None, 0)))(RATE, keys)
    times = jnp.linspace(0.0, T1, 4001)[1::2]
    lengths = jax.vmap(lambda t: length_at(t, RATE))(times)
    integral = lambda a: T1 * jnp.mean(jax.vmap(lambda t, h: error_at(t, a, h))(times, lengths))
    for sample, expected in zip(found, jax.value_and_grad(integral)(RATE), strict=True):
        uncertain = np.std(sample) / len(keys) ** 0.5
        # A path of coarse steps is exact to a few parts in a thousand.
        assert abs(np.mean(sample) - expected) < 4 * uncertain + 3e-3 * abs(expected)
        assert uncertain < 0.02 * abs(expected)


def test_the_stiffness_of_a_linear_equation_is_its_rate_at_every_point():
    options = dict(solver=dfx.Tsit5(), stepsize_controller=CONTROL)
    penalty = lambda a: tn.diffeqsolve(
        DECAY, t0=0.0, t1=T1, dt0=0.1, y0=jnp.array([1.0, 0.3]), args=a,
        regularizer=tn.Stiffness(), quadrature=tn.Sampled(), key=jr.key(0), **options,
    ).stats["penalty"]  # fmt: skip
    value, gradient = jax.jit(jax.value_and_grad(penalty))(7.0)
    close(jnp.stack([value, gradient]), jnp.array([7.0 * T1, T1]), 1e-9)


@pytest.mark.slow
def test_trial_steps_estimate_the_integral():
    """With many times, the mean is the integral over the path."""
    solution = jax.jit(lambda key: solve(1.3, BOTH, tn.Sampled(points=400), key=key))(jr.key(0))
    path = solve(1.3, None, tn.Sampled(), saveat=dfx.SaveAt(dense=True))
    times = (np.arange(400) + 0.5) / 400 * 2.0
    term, solver = dfx.ODETerm(field), dfx.Dopri5()

    def at(t):
        y = path.evaluate(t)
        h = tn.initial_step_size(term, t, 2.0, y, 1.3, order=5, rtol=RTOL, atol=ATOL)
        state = solver.init(term, t, t + h, y, 1.3)
        y1, error, *_ = solver.step(term, t, t + h, y, 1.3, state, False)
        return optx.rms_norm(error / (ATOL + RTOL * jnp.maximum(jnp.abs(y), jnp.abs(y1))))

    close(solution.stats["penalty"][0], 2.0 * jnp.mean(jax.vmap(at)(jnp.asarray(times))), 2e-2)


def test_rows_have_trial_steps_of_their_own():
    y0 = jnp.stack([Y0, 0.3 * Y0])
    rows = lambda t, y, a: jax.vmap(lambda y: field(t, y, a))(y)
    found = tn.diffeqsolve(
        dfx.ODETerm(rows), dfx.Dopri5(), 0.0, 2.0, 0.1, y0, 1.3, stepsize_controller=CONTROL,
        regularizer=tn.ErrorEstimate(), quadrature=tn.Sampled(batch_axis=0), key=jr.key(0),
    )  # fmt: skip
    assert found.stats["penalty"] > 0


def test_trial_steps_end_with_the_solve():
    # BUG, fixed: the vector field was evaluated where it need not be defined, and was NaN there.
    until_one = lambda t, y, args: -y * jnp.sqrt(1 - t)
    solve = lambda key: tn.diffeqsolve(
        dfx.ODETerm(until_one),
        dfx.Dopri5(),
        0.0,
        1.0,
        None,
        jnp.ones(2),
        stepsize_controller=dfx.PIDController(1e-2, 1e-2),
        regularizer=[tn.ErrorEstimate(), tn.Stiffness()],
        key=key,
    ).stats["penalty"]
    penalties = jax.vmap(solve)(jax.random.split(jax.random.key(0), 8))
    assert all(jnp.all(jnp.isfinite(x)) for x in penalties)
