"""Flow matching against closed forms."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import taynode as tn
from taynode.models import (
    ConcatSquashMLP,
    ContinuousFlow,
    FlowMatching,
    generated_pairs,
    optimal,
    Solve,
    uniform_times,
)
from taynode.models.matching import independent


KEY = jr.key(0)
X = jr.normal(jr.key(1), (64, 2)) + 3.0


class Constant(eqx.Module):
    velocity: jax.Array

    def __call__(self, t, z, args):
        return jnp.broadcast_to(self.velocity, z.shape) * t


def test_loss_is_the_distance_from_the_velocity_of_straight_paths():
    """For v = a t and data at a point: E |a t - (e - x)|^2, by element."""
    a, point = jnp.array([0.7, -1.2]), jnp.array([0.5, 2.0])
    flow = ContinuousFlow(Constant(a), (2,))
    x = jnp.broadcast_to(point, (20_000, 2))
    loss, penalty = FlowMatching()(flow, x, key=KEY)
    expected = jnp.mean(a**2 / 3 + a * point + point**2 + 1)
    assert penalty is None
    np.testing.assert_allclose(loss, expected, rtol=0.01)


def test_penalty_is_the_rate_at_points_of_the_paths():
    """Of v = a t: the mean square of its second derivative is that of a."""
    a = jnp.array([0.7, -1.2])
    flow = ContinuousFlow(Constant(a), (2,))
    regularizers = {"r2": tn.TotalDerivative(2), "r3": tn.TotalDerivative(3)}
    for penalized in (0.25, 1.0):
        plain = FlowMatching()(flow, X, key=KEY)
        found = FlowMatching(penalized_fraction=penalized)(flow, X, regularizers, key=KEY)
        # The penalty does not change the loss.
        np.testing.assert_allclose(found.loss, plain.loss, rtol=1e-12)
        np.testing.assert_allclose(found.penalty["r2"], jnp.mean(a**2), rtol=1e-12)
        np.testing.assert_allclose(found.penalty["r3"], 0.0, atol=1e-12)


def test_gradient_is_that_of_differences():
    flow = ContinuousFlow(ConcatSquashMLP((2, 4, 2), jnp.tanh, key=KEY), (2,))
    arrays, static = eqx.partition(flow, eqx.is_inexact_array)
    matching = FlowMatching(penalized_fraction=0.5)

    @jax.jit
    def objective(arrays):
        loss, penalty = matching(eqx.combine(arrays, static), X, tn.TotalDerivative(2), key=KEY)
        return loss + 0.1 * jnp.asarray(penalty)

    gradient = jax.grad(objective)(arrays)
    direction = jax.tree.map(
        lambda x: jnp.sin(jnp.arange(x.size, dtype=float) + 1.0).reshape(x.shape), arrays
    )
    move = lambda size: jax.tree.map(lambda x, d: x + size * d, arrays, direction)
    difference = (objective(move(1e-5)) - objective(move(-1e-5))) / 2e-5
    product = sum(map(jnp.vdot, jax.tree.leaves(gradient), jax.tree.leaves(direction)))
    np.testing.assert_allclose(product, difference, rtol=1e-7)


def test_optimal_pairs_are_those_of_scipy():
    noise = jr.normal(jr.key(2), X.shape)
    paired = optimal(X, noise)
    cost = lambda pairs: float(jnp.sum((X - pairs) ** 2))
    distances = np.sum((np.asarray(X)[:, None] - np.asarray(noise)) ** 2, axis=-1)
    rows, columns = linear_sum_assignment(distances)
    np.testing.assert_allclose(cost(paired), distances[rows, columns].sum(), rtol=1e-12)
    assert cost(paired) < cost(independent(X, noise))
    np.testing.assert_array_equal(jnp.sort(paired, axis=0), jnp.sort(noise, axis=0))


def test_times_fill_the_interval():
    times = np.sort(uniform_times(KEY, 50))
    assert (np.floor(50 * times) == np.arange(50)).all()


def test_wrong_shares_are_refused():
    with pytest.raises(
        ValueError, match="`penalized_fraction` must be above 0 and at most 1, got 0"
    ):
        FlowMatching(penalized_fraction=0.0)


def test_expected_evaluations_of_flow_matching_are_a_number_of_evaluations():
    # BUG, fixed: the penalty was a number of steps without the least that a solve needs.
    flow = ContinuousFlow(ConcatSquashMLP((2, 8, 2), key=jr.key(0)), (2,))
    x = jr.normal(jr.key(1), (64, 2))
    regularizer = tn.ExpectedNFE(dfx.Dopri5(), 1e-5, 1e-5)
    matching = FlowMatching(penalized_fraction=1.0)
    assert matching(flow, x, regularizer, key=jr.key(2)).penalty > 11


def test_reflow_pairs_are_samples_and_their_noise():
    flow = ContinuousFlow(ConcatSquashMLP((2, 4, 2), jnp.tanh, key=KEY), (2,))
    solve = Solve(dfx.Euler(), num_steps=2)
    x, noise, solution = eqx.filter_jit(generated_pairs)(flow, 5, solve, key=KEY)
    half = noise - 0.5 * flow.vector_field(jnp.array(1.0), noise, None)
    end = half - 0.5 * flow.vector_field(jnp.array(0.5), half, None)
    np.testing.assert_allclose(x, end, rtol=1e-6)
    assert solution.stats["nfe"] == 2

    # The loss is that of the lines between them, whatever the coupling.
    @eqx.filter_jit
    def losses(x, noise):
        loss = FlowMatching(coupling=optimal)(flow, x, noise=noise, key=KEY).loss
        times = uniform_times(jr.split(KEY, 3)[1], len(x))
        points = (1 - times[:, None]) * x + times[:, None] * noise
        one = lambda t, z: flow.vector_field(t, z[None], None)[0]
        return loss, jnp.mean((jax.vmap(one)(times, points) - noise + x) ** 2)

    loss, expected = losses(x, noise)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
