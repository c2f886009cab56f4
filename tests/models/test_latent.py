"""Latent ODEs against a closed form, and what must not change them."""

import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from taynode.models import (
    divergence_from_prior,
    evidence_bound,
    importance_bound,
    LatentODE,
    RecurrentEncoder,
    Solve,
)
from taynode.tasks.latent import AbstractLatent, SeriesBatch


KEY = jr.key(0)
TIMES = np.array([0.0, 0.1, 0.35, 0.5, 0.8, 1.0])


def small(**options):
    return LatentODE(3, 4, width=5, depth=1, noise_std=0.3, key=KEY, **options)


def series(num=4, key=KEY, times=TIMES):
    values_key, mask_key = jr.split(key)
    shape = num, len(times), 3
    return SeriesBatch(jr.normal(values_key, shape), jr.bernoulli(mask_key, 0.4, shape))


class Task(AbstractLatent):
    """Only its loss is of interest."""

    times = TIMES
    num_draws = 2
    defaults = load = model = None


Task.__abstractmethods__ = frozenset()


TASK = Task()


@eqx.filter_jit
def outcome_of(model, batch, task=TASK, epoch=None):
    if epoch is None:
        found = task.loss(model, batch, Solve(), KEY)
    else:
        found = task.training_loss(model, batch, Solve(), KEY, epoch)
    return found.loss, found.weight


def loss_of(model, batch, task=TASK):
    return outcome_of(model, batch, task)[0]


def test_size_is_that_of_the_papers():
    model = LatentODE(37, key=KEY)
    leaves = jtu.tree_leaves(eqx.filter(model, eqx.is_inexact_array))
    assert sum(x.size for x in leaves) == 48_147


def no_motion(t, z, args):
    return jnp.zeros_like(z)


@pytest.mark.parametrize("num_draws", [1, 5])
def test_bounds_of_a_linear_gaussian_model_are_its_likelihood(num_draws):
    """With the true posterior, both bounds are the log-likelihood itself, whatever is drawn."""
    model = small(vector_field=no_motion)
    values, mask = series(1)
    weight, bias, noise = model.decoder.weight, model.decoder.bias + 0.2, model.noise_std
    model = eqx.tree_at(lambda m: m.decoder.bias, model, bias)
    # What is observed is linear in z, which does not move.
    seen = np.asarray(mask[0])
    design = np.concatenate([np.asarray(weight.T)[row] for row in seen])
    data = np.concatenate(
        [np.asarray(v - bias)[row] for v, row in zip(values[0], seen, strict=True)]
    )
    covariance = design @ design.T + noise**2 * np.eye(len(data))
    expected = multivariate_normal(np.zeros(len(data)), covariance).logpdf(data)
    precision = np.eye(4) + design.T @ design / noise**2
    center = np.linalg.solve(precision, design.T @ data) / noise**2
    # The bounds are for a diagonal posterior, which this one is in coordinates of its own axes.
    sizes, axes = np.linalg.eigh(np.linalg.inv(precision))
    rotated = eqx.tree_at(lambda m: m.decoder.weight, model, jnp.asarray(axes.T) @ weight)
    mean, std = jnp.asarray(axes.T @ center)[None], jnp.sqrt(jnp.asarray(sizes))[None]
    z0 = mean + std * jr.normal(KEY, (num_draws, 1, 4))
    states = eqx.filter_jit(lambda z0: rotated.paths(z0, TIMES)[0])(z0)
    likelihood = rotated.log_likelihood(rotated.decoder(states), values, mask)
    tight = importance_bound(likelihood, z0, mean, std)
    np.testing.assert_allclose(tight, [expected], rtol=1e-8)
    # The other one is so in the mean over draws.
    draws = mean + std * jr.normal(KEY, (20_000, 1, 4))
    predicted = rotated.decoder(draws)[:, :, None]
    likelihood = rotated.log_likelihood(predicted, values, mask)
    np.testing.assert_allclose(evidence_bound(likelihood, mean, std), [expected], rtol=5e-3)


def test_divergence_from_the_prior():
    mean, std = jnp.array([[0.3, -1.0]]), jnp.array([[0.5, 2.0]])
    z = mean + std * jr.normal(KEY, (200_000, 2))
    log = lambda z, m, s: jnp.sum(-0.5 * ((z - m) / s) ** 2 - jnp.log(s), axis=-1)
    expected = jnp.mean(log(z, mean, std) - log(z, 0.0, jnp.ones(2)))
    np.testing.assert_allclose(divergence_from_prior(mean, std), [expected], rtol=0.01)


VALUE_AND_GRADIENT = eqx.filter_jit(eqx.filter_value_and_grad(loss_of))


@hypothesis.settings(max_examples=15)
@hypothesis.given(
    number=st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.just(1e30)),
    seed=st.integers(0, 100),
)
def test_what_is_masked_changes_nothing(number, seed):
    model, batch = small(), series(key=jr.key(seed))
    other = batch._replace(values=jnp.where(batch.mask, batch.values, number))
    first, second = (VALUE_AND_GRADIENT(model, b) for b in (batch, other))
    for one, two in zip(jtu.tree_leaves(first), jtu.tree_leaves(second), strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_array_equal(one, two)


def test_padding_changes_nothing():
    model, batch = small(), series()
    longer = Task()
    longer.times = np.array([0.0, 0.05, 0.1, 0.35, 0.5, 0.6, 0.8, 1.0])
    keep = np.isin(longer.times, TIMES)
    pad = lambda x, fill: jnp.full((len(x), len(keep), 3), fill, x.dtype).at[:, keep].set(x)
    padded = SeriesBatch(pad(batch.values, 7.0), pad(batch.mask, False))
    first, second = loss_of(model, batch), loss_of(model, padded, longer)
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_order_of_series_changes_nothing_but_the_order():
    model, batch = small(), series()
    order = jnp.array([2, 0, 3, 1])
    shuffled = jtu.tree_map(lambda x: x[order], batch)
    means, others = (model.encoder(jnp.asarray(TIMES), *b) for b in (batch, shuffled))
    for one, other in zip(means, others, strict=True):
        np.testing.assert_allclose(one[order], other, rtol=1e-12)


def test_state_of_the_encoder_may_move():
    batch = series()
    still, moving = (RecurrentEncoder(3, 4, moves=moves, key=KEY) for moves in (False, True))
    assert still.drift is None
    found = [encoder(jnp.asarray(TIMES), *batch) for encoder in (still, moving)]
    assert jnp.abs(found[0][0] - found[1][0]).max() > 1e-6
    # At most the distances of times matter.
    later = moving(jnp.asarray(TIMES) + 0.5, *batch)
    np.testing.assert_allclose(found[1][0], later[0], rtol=1e-10)


def test_series_without_observations_is_harmless():
    model, batch = small(), series()
    empty = batch._replace(mask=jnp.zeros_like(batch.mask))
    value, gradient = VALUE_AND_GRADIENT(model, empty)
    assert np.isfinite(value)
    assert all(np.isfinite(x).all() for x in jtu.tree_leaves(gradient))


def test_loss_is_per_observed_value_and_adds_up():
    """The loss of a batch is the mean of those of its series, weighted with their observations."""
    model, batch = small(vector_field=no_motion), series()
    single, before = [], jnp.array(0.0, jnp.float32)
    # The noise of a draw depends on the shape of the batch: without any, it does not matter.
    model = eqx.tree_at(lambda m: m.encoder.head.second.weight, model, replace_fn=lambda w: 0.0 * w)
    for i in range(4):
        one = jtu.tree_map(lambda x, i=i: x[i : i + 1], batch)
        single.append(outcome_of(model, one, TASK, before))
    loss, weight = outcome_of(model, batch, TASK, before)
    losses, weights = (np.array(x) for x in zip(*single, strict=True))
    assert float(weight) == weights.sum() == int(batch.mask.sum())
    np.testing.assert_allclose(loss, np.average(losses, weights=weights), rtol=1e-4)


def test_later_times_are_predicted():
    model, batch = small(), series()
    later = jnp.array([1.0, 1.5, 2.0])
    run = eqx.filter_jit(
        lambda model: model(jnp.asarray(TIMES), *batch, num_draws=2, at=later, key=KEY)
    )
    found = run(model)
    assert found.predicted.shape == (2, 4, 3, 3)
    assert np.isfinite(found.predicted).all()


def test_divergence_is_phased_in():
    model, batch = small(), series()
    losses = [
        outcome_of(model, batch, TASK, jnp.array(epoch, jnp.float32))[0]
        for epoch in (0.0, 10.0, 1e4)
    ]
    assert losses[0] == losses[1]
    np.testing.assert_allclose(losses[2], loss_of(model, batch), rtol=1e-6)
    assert losses[0] < losses[2]
