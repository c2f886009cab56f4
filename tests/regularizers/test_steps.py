"""Penalties on steps: against what diffrax's own loop computes, and against closed forms."""

import itertools

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn
from tests.quadrature.reference import close


RTOL, ATOL = 1e-4, 1e-5
CONTROL = dfx.PIDController(rtol=RTOL, atol=ATOL)
DOPRI5 = dfx.Dopri5()
Y0 = jnp.array([1.0, -0.5, 2.0])


def field(t, y, a):
    return jnp.sin(a * y) + jnp.cos(3 * t) * y[::-1]


def solve(a, regularizer, quadrature, *, solver=DOPRI5, **options):
    settings = dict(t0=0.0, t1=2.0, dt0=0.1, y0=Y0, args=a, stepsize_controller=CONTROL)
    return tn.diffeqsolve(
        dfx.ODETerm(field), solver, regularizer=regularizer, quadrature=quadrature,
        **(settings | options)
    )  # fmt: skip


def replayed(a, ts, solver=DOPRI5):
    """The numbers of ERNODE and SRNODE, step by step, as written in the paper."""
    term, y = dfx.ODETerm(field), Y0
    error_sum = stiffness_sum = 0.0
    state = solver.init(term, ts[0], ts[1], y, a)
    for t0, t1 in itertools.pairwise(ts):
        y1, error, info, state, _ = solver.step(term, t0, t1, y, a, state, False)
        scaled = error / (ATOL + RTOL * jnp.maximum(jnp.abs(y), jnp.abs(y1)))
        error_sum += jnp.sqrt(jnp.mean(scaled**2)) * (t1 - t0)
        k, weights = info["k"] / (t1 - t0), solver.tableau.a_lower
        g = [y + (t1 - t0) * jnp.tensordot(w, k[: len(w)], axes=1) for w in weights[-2:]]
        ratio = jnp.linalg.norm(k[-1] - k[-2]) / jnp.linalg.norm(g[1] - g[0])
        stiffness_sum += ratio * (t1 - t0)
        y = y1
    return error_sum, stiffness_sum


BOTH = (tn.ErrorEstimate(), tn.Stiffness())


def test_sums_over_accepted_steps_are_those_of_the_steps_and_so_are_their_gradients():
    penalties = lambda a, **options: solve(a, BOTH, tn.AcceptedSteps(), **options)
    solution = jax.jit(lambda a: penalties(a, saveat=dfx.SaveAt(t0=True, steps=True)))(1.3)
    assert solution.stats["num_rejected_steps"] > 0
    ts = np.asarray(solution.ts)[np.isfinite(solution.ts)]
    expected = jax.jit(lambda a: replayed(a, jnp.asarray(ts)))
    close(jnp.stack(solution.stats["penalty"]), jnp.stack(expected(1.3)), 1e-10)
    plain = solve(1.3, None, tn.Sampled(), saveat=dfx.SaveAt(t0=True, steps=True))
    np.testing.assert_array_equal(plain.ys, solution.ys)
    assert plain.stats["nfe"] == solution.stats["nfe"]
    # Step sizes have no gradient.
    gradient = jax.jacrev(lambda a: jnp.stack(penalties(a).stats["penalty"]))(1.3)
    above, below = (jnp.stack(expected(1.3 + h)) for h in (1e-5, -1e-5))
    close(gradient, (above - below) / 2e-5, 1e-7)


def test_the_stiffness_of_a_linear_equation_is_its_rate():
    linear = lambda t, y, a: -a * y
    found = tn.diffeqsolve(
        dfx.ODETerm(linear), dfx.Tsit5(), 0.0, 3.0, 0.1, Y0, 7.0, stepsize_controller=CONTROL,
        regularizer=tn.Stiffness(), quadrature=tn.AcceptedSteps(),
    )  # fmt: skip
    close(found.stats["penalty"], 7.0 * 3.0, 1e-9)


def test_the_errors_are_those_by_which_the_solver_chose_its_steps():
    """An independent loop over diffrax's steps, with the errors that its control computes."""
    term, t0, t1, y = dfx.ODETerm(field), jnp.array(0.0), jnp.array(0.1), Y0
    state, total, rejected = DOPRI5.init(term, t0, t1, y, 1.3), 0.0, 0
    t1, control = CONTROL.init(term, t0, 2.0, y, 0.1, 1.3, None, 5)
    step = jax.jit(lambda t0, t1, y, state: DOPRI5.step(term, t0, t1, y, 1.3, state, False))
    while t0 < 2.0:
        y1, error, _, next_state, _ = step(t0, t1, y, state)
        accepted, next_t0, next_t1, _, control, _ = CONTROL.adapt_step_size(
            t0, t1, y, y1, 1.3, error, 5, control
        )
        if accepted:
            # The state of the control begins with the inverse error of the last step.
            total += (t1 - t0) / control[0]
            y, state = y1, next_state
        rejected += not accepted
        t0, t1 = next_t0, jnp.minimum(next_t1, 2.0)
    solution = jax.jit(lambda: solve(1.3, tn.ErrorEstimate(), tn.AcceptedSteps()))()
    assert solution.stats["num_rejected_steps"] == rejected > 0
    close(solution.stats["penalty"], total, 1e-9)


@pytest.mark.parametrize(
    ("regularizer", "options", "message"),
    [
        (tn.TotalDerivative(2), {}, "needs regularizers such as"),
        (tn.ErrorEstimate(), dict(adjoint=dfx.BacksolveAdjoint()), "does not differentiate"),
        (
            tn.ErrorEstimate(),
            dict(solver=dfx.Euler(), stepsize_controller=dfx.ConstantStepSize()),
            "`Euler` has none",
        ),
        (tn.Stiffness(), dict(solver=dfx.Bosh3()), "two stages at the end"),
        (tn.ErrorEstimate(), dict(stepsize_controller=dfx.ConstantStepSize()), "pass `rtol=`"),
    ],
)
def test_what_cannot_be_charged_is_refused(regularizer, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        solve(1.3, regularizer, tn.AcceptedSteps(), **options)
