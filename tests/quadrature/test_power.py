"""Power means over times and rows: against a closed form."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import taynode as tn

from .reference import close


T1, RATE, POWER = 2.0, 0.8, 4
Y0 = jnp.array([[1.0], [0.3], [-2.0]])


def penalty(quadrature, rate=RATE, y0=Y0, key=0, **options):
    """The kinetic energy of y' = - rate y."""
    return tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, rate: -rate * y), dfx.Tsit5(), 0.0, T1, 0.02, y0, rate,
        regularizer=tn.KineticEnergy(), quadrature=quadrature, key=jr.key(key), **options,
    ).stats["penalty"]  # fmt: skip


def exact(rate):
    """The kinetic energy of a row is (rate y0)^2 exp(-2 rate t)."""
    decay = 2 * POWER * rate
    over_time = -jnp.expm1(-decay * T1) / (decay * T1)
    return T1 * (jnp.mean((rate * Y0) ** (2 * POWER)) * over_time) ** (1 / POWER)


@pytest.mark.parametrize("batch_axis", [0, pytest.param(None, marks=pytest.mark.slow)])
def test_many_points_give_the_power_mean_and_its_gradient(batch_axis):
    quadrature = tn.Sampled(points=128, batch_axis=batch_axis, power=POWER)
    # Without rows, the state is one path. So there is one row then.
    y0 = Y0 if batch_axis == 0 else Y0[:1]
    expected = lambda rate: exact(rate) if batch_axis == 0 else exact(rate) * share
    share = (jnp.mean(Y0[:1] ** 8) / jnp.mean(Y0**8)) ** (1 / POWER)
    found = jax.jit(jax.value_and_grad(lambda rate: penalty(quadrature, rate, y0)))(RATE)
    for value, wanted in zip(found, jax.value_and_grad(expected)(RATE), strict=True):
        close(value, wanted, 5e-3, 5e-3)


def test_larger_powers_give_larger_means_and_the_first_is_the_usual_one():
    at = lambda **options: float(
        jax.jit(lambda: penalty(tn.Sampled(points=4, batch_axis=0, **options)))()
    )
    values = [at(power=power) for power in (1, 4, 1000.0)]
    assert values[0] == at()
    assert values == sorted(set(values))
    # The largest rate, in the end.
    largest = T1 * (RATE * 2.0) ** 2
    assert values[1] < values[2] <= largest


def test_paths_at_rest_have_neither_a_penalty_nor_a_gradient():
    quadrature = tn.Sampled(batch_axis=0, power=2.5)
    rest = jnp.zeros_like(Y0)
    found = jax.jit(jax.value_and_grad(lambda y0: penalty(quadrature, y0=y0)))(rest)
    for x in found:
        np.testing.assert_array_equal(x, np.zeros_like(x))


class Signed(tn.AbstractRegularizer):
    def rate(self, vector_field, t, y, args, state):
        return vector_field(t, y, args), jnp.sum(y)


def test_what_has_no_power_mean_is_refused():
    for power in (0.5, float("inf")):
        with pytest.raises(ValueError, match="`power` must be a finite number of at least 1"):
            tn.Sampled(power=power)
    solve = lambda **options: tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: -y), dfx.Euler(), 0.0, 1.0, 0.5, -jnp.ones(2),
        quadrature=tn.Sampled(power=2), key=jr.key(0), **options,
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="rates that are not negative"):
        jax.block_until_ready(solve(regularizer=Signed()).stats["penalty"])
    event = dfx.Event(lambda t, y, args, **kwargs: y[0] + 0.5, dfx.VeryChord(1e-5, 1e-5))
    with pytest.raises(ValueError, match="use `power=1`"):
        solve(regularizer=tn.KineticEnergy(), event=event)
