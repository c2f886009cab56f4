"""Random end times."""

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from taynode.models import Solve
from taynode.models.steer import random_ends


KEYS = jr.split(jr.key(0), 4000)
TIMES = jnp.array([0.0, 0.1, 0.3, 0.3, 0.9])
GAPS = jnp.array([0.0, 0.1, 0.0, 0.0, 0.6])


def ends(t0, t1, saveat, spread):
    t0, t1 = jnp.array(t0), jnp.array(t1)
    return eqx.filter_vmap(lambda key: random_ends(t0, t1, saveat, spread, key=key))(KEYS)


@pytest.mark.parametrize(("t0", "t1"), [(0.0, 2.0), (2.0, 0.0)])
def test_the_end_is_uniform_around_the_given_one(t0, t1):
    found, _ = ends(t0, t1, dfx.SaveAt(t1=True), 0.25)
    shares = np.sort((np.asarray(found) - t1) / (0.25 * (t1 - t0)))
    np.testing.assert_allclose(shares, np.linspace(-1, 1, len(shares)), atol=0.05)


def test_output_times_keep_their_order_and_ties_stay():
    end, saveat = ends(0.0, 0.9, dfx.SaveAt(ts=TIMES), 0.5)
    moved = np.asarray(saveat.subs.ts)
    assert (np.diff(moved, axis=1) >= 0).all()
    largest = np.abs(moved - np.asarray(TIMES)).max(axis=0)
    np.testing.assert_allclose(largest, 0.5 * np.asarray(GAPS), rtol=0.01, atol=1e-12)
    np.testing.assert_allclose(moved.mean(axis=0), TIMES, atol=0.01)
    # The solve reaches the last output, and never ends before the given time.
    np.testing.assert_array_equal(end, np.maximum(moved[:, -1], 0.9))


def test_outputs_are_the_solution_at_the_moved_times_with_the_tolerance_of_the_solve():
    # The published code forgets tolerances, and moves nothing if there are several outputs.
    control = dfx.PIDController(rtol=1e-9, atol=1e-9)
    solve = Solve(stepsize_controller=control, steer=0.4)
    field = lambda t, y, args: args * y
    rate, key = jnp.array(-1.3), KEYS[0]
    for saveat in (dfx.SaveAt(t1=True), dfx.SaveAt(ts=TIMES[1:3])):
        sol = solve(field, jnp.array([1.0, 2.0]), rate, saveat=saveat, key=key)
        plain = TIMES[1:3] if saveat.subs.ts is not None else jnp.array([1.0])
        assert (sol.ts != plain).all()
        exact = jnp.exp(rate * jnp.asarray(sol.ts))[:, None] * jnp.array([1.0, 2.0])
        np.testing.assert_allclose(sol.ys, exact, rtol=1e-7)


def test_what_cannot_be_steered_is_refused():
    field, y0, key = (lambda t, y, args: -y), jnp.ones(2), KEYS[0]
    with pytest.raises(ValueError, match="`steer` must be at least 0 and less than 1, got 1"):
        Solve(steer=1.0)
    with pytest.raises(ValueError, match="needs `key=`"):
        Solve(steer=0.1)(field, y0)
    with pytest.raises(ValueError, match="`steer` must be at most 1/2"):
        Solve(steer=0.7)(field, y0, saveat=dfx.SaveAt(ts=TIMES), key=key)
    with pytest.raises(ValueError, match=r"`saveat=SaveAt\(t1=True\)`"):
        Solve(steer=0.1)(field, y0, saveat=dfx.SaveAt(steps=True), key=key)
