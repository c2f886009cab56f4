"""Latent ODEs against a closed form, and what must not change them."""

from typing import Any

import diffrax as dfx
import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import multivariate_normal, norm

import taynode as tn
from taynode.lab.tasks.base import Evaluated
from taynode.lab.tasks.latent import AbstractLatent, seen_part, SeriesBatch, UNSEEN
from taynode.models import (
    divergence_from_prior,
    evidence_bound,
    importance_bound,
    LatentODE,
    RecurrentEncoder,
    Solve,
)


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
# Steps of equal length take less time to compile, and those of a single stage most of all.
GRID = Solve(solver=dfx.Euler(), num_steps=4)


@eqx.filter_jit
def outcome_of(model, batch, task=TASK, epoch=None):
    if epoch is None:
        found = task.loss(model, batch, GRID, KEY)
    else:
        found = task.training_loss(model, batch, GRID, KEY, epoch)
    return found.loss, found.weight


@eqx.filter_jit
def encode(encoder, times, values, mask):
    return encoder(*map(jnp.asarray, (times, values, mask)))


def loss_of(model, batch, task=TASK):
    return outcome_of(model, batch, task)[0]


def test_size_is_that_of_the_papers():
    model = eqx.filter_eval_shape(lambda key: LatentODE(37, key=key), KEY)
    leaves = [x for x in jtu.tree_leaves(model) if isinstance(x, jax.ShapeDtypeStruct)]
    assert sum(x.size for x in leaves) == 48_147


@pytest.mark.slow
def test_appended_zeros_move_and_are_observed_but_have_no_prior():
    model, (values, mask) = small(augment=2), series()
    predict = eqx.filter_jit(lambda: model(TIMES, values, mask, GRID, num_draws=2, key=KEY))
    found = predict()
    assert (found.z0.shape, found.solution.ys.shape) == ((2, 4, 4), (6, 8, 6))
    assert found.predicted.shape == (2, *values.shape)
    np.testing.assert_array_equal(found.solution.ys[0, :, 4:], 0.0)
    assert abs(found.solution.ys[-1, :, 4:]).min() > 0
    states = np.moveaxis(np.asarray(found.solution.ys).reshape(6, 2, 4, 6), 0, -2)
    expected = states @ model.decoder.weight + model.decoder.bias
    np.testing.assert_allclose(found.predicted, expected, rtol=1e-12)


def no_motion(t, z, args):
    return jnp.zeros_like(z)


class Linear(eqx.Module):
    """z' = A z, for states in rows."""

    matrix: Any

    def __call__(self, t, z, args):
        return z @ self.matrix.T


EXACT = Solve(stepsize_controller=dfx.PIDController(rtol=1e-11, atol=1e-11))


class LinearGaussian:
    """A model in which everything is known: what is seen is linear in z(0), with noise.

    In coordinates in which the posterior of z(0) is diagonal, as the models have it.
    """

    def __init__(self):
        model, (self.values, self.mask) = small(), series(1)
        weight, bias, noise = model.decoder.weight, model.decoder.bias + 0.2, model.noise_std
        matrix = np.asarray(jr.normal(jr.key(5), (4, 4)))
        seen = np.asarray(self.mask[0])
        self.design = np.concatenate(
            [
                np.asarray(weight.T)[row] @ expm(matrix * t)
                for t, row in zip(TIMES, seen, strict=True)
            ]
        )
        self.data = np.concatenate(
            [np.asarray(v - bias)[row] for v, row in zip(self.values[0], seen, strict=True)]
        )
        precision = np.eye(4) + self.design.T @ self.design / noise**2
        center = np.linalg.solve(precision, self.design.T @ self.data) / noise**2
        sizes, axes = np.linalg.eigh(np.linalg.inv(precision))
        self.design = self.design @ axes
        self.mean, self.std = axes.T @ center, np.sqrt(sizes)
        parts = lambda m: (m.decoder.weight, m.decoder.bias, m.vector_field)
        turned = jnp.asarray(axes.T) @ weight, bias, Linear(jnp.asarray(axes.T @ matrix @ axes))
        self.model = eqx.tree_at(parts, model, turned)
        covariance = self.design @ self.design.T + noise**2 * np.eye(len(self.data))
        self.evidence = multivariate_normal(np.zeros(len(self.data)), covariance).logpdf(self.data)

    @eqx.filter_jit
    def likelihood(self, z0):
        """Of the starts of eight paths."""
        states = self.model.paths(z0, TIMES, EXACT)[0]
        return self.model.log_likelihood(self.model.decoder(states), self.values, self.mask)


@pytest.fixture(scope="module")
def known():
    return LinearGaussian()


def test_bound_of_a_linear_gaussian_model_is_its_likelihood(known):
    """With the true posterior, whatever is drawn."""
    noise = jr.normal(KEY, (8, 1, 4))
    z0 = known.mean + known.std * noise
    likelihood, std = known.likelihood(z0), jnp.asarray(known.std)[None]
    for num in (1, 5):
        bound = importance_bound(likelihood[:num], z0[:num], noise[:num], std)
        np.testing.assert_allclose(bound, [known.evidence], rtol=1e-8)


def test_evidence_bound_of_a_linear_gaussian_model(known):
    """Its closed form, with a posterior that is not the true one."""
    mean, std = known.mean + 0.3, 1.5 * known.std
    # The mean of a quadratic function over a normal distribution is that over these points.
    points = 2.0 * np.concatenate([np.eye(4), -np.eye(4)])
    z0 = jnp.asarray(mean + std * points)[:, None]
    found = evidence_bound(known.likelihood(z0), jnp.asarray(mean)[None], jnp.asarray(std)[None])
    noise = known.model.noise_std
    expected = norm(known.design @ mean, noise).logpdf(known.data).sum()
    expected -= np.sum((known.design * std) ** 2) / (2 * noise**2)
    expected -= np.sum(0.5 * (mean**2 + std**2 - 1) - np.log(std))
    np.testing.assert_allclose(found, [expected], rtol=1e-8)
    assert expected < known.evidence


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


@pytest.mark.slow
@pytest.mark.parametrize("moves", [False, True])
def test_padding_changes_nothing(moves):
    """Neither between observations, nor before the first or after the last of them."""
    model = small(encoder=RecurrentEncoder(3, 4, moves=moves, key=KEY))
    times = np.array([0.1, 0.35, 0.5, 0.8])
    batch, short, longer = series(times=times), Task(), Task()
    short.times = times
    longer.times = np.array([0.0, 0.05, 0.1, 0.35, 0.5, 0.6, 0.8, 1.0])
    keep = np.isin(longer.times, times)
    pad = lambda x, fill: jnp.full((len(x), len(keep), 3), fill, x.dtype).at[:, keep].set(x)
    padded = SeriesBatch(pad(batch.values, 7.0), pad(batch.mask, False))
    first, second = loss_of(model, batch, short), loss_of(model, padded, longer)
    np.testing.assert_allclose(first, second, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("moves", [False, True])
def test_order_within_ties_changes_nothing(moves):
    """Rows of the same time may be in any order, also if they tell of the same channel."""
    model = small(encoder=RecurrentEncoder(3, 4, moves=moves, key=KEY))
    tied = Task()
    tied.times = np.array([0.0, 0.2, 0.2, 0.2, 0.7, 0.7])
    batch = series()
    shuffled = jtu.tree_map(lambda x: x[:, jnp.array([0, 3, 1, 2, 5, 4])], batch)
    first, second = (loss_of(model, b, tied) for b in (batch, shuffled))
    np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-9)
    # They are read as one row, with the means of what is there.
    rows = [[0], [1, 2, 3], [4, 5]]
    values, seen = map(np.asarray, batch)
    mask = np.stack([seen[:, row].any(1) for row in rows], 1)
    sums = [np.where(seen, values, 0.0)[:, row].sum(1) for row in rows]
    counts = [np.maximum(seen[:, row].sum(1), 1) for row in rows]
    means = np.stack(sums, 1) / np.stack(counts, 1)
    expected = encode(model.encoder, np.array([0.0, 0.2, 0.7]), means, mask)
    for one, two in zip(encode(model.encoder, tied.times, *batch), expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9)


def without_noise(model):
    """The noise of a draw depends on the shape of the batch: without any, it does not matter."""
    half = lambda x: x.at[..., x.shape[-1] // 2 :].set(0.0)
    parts = lambda m: (m.encoder.head.second.weight, m.encoder.head.second.bias)
    return eqx.tree_at(parts, model, replace_fn=half)


@pytest.mark.slow
def test_order_of_series_changes_nothing():
    model, batch = without_noise(small()), series()
    order = jnp.array([2, 0, 3, 1])
    shuffled = jtu.tree_map(lambda x: x[order], batch)
    # The smallest standard deviation is 1e-6, not 0, and draws are in the order of the batch.
    np.testing.assert_allclose(loss_of(model, batch), loss_of(model, shuffled), rtol=1e-6)
    means, others = (encode(model.encoder, TIMES, *b) for b in (batch, shuffled))
    for one, other in zip(means, others, strict=True):
        np.testing.assert_allclose(one[order], other, rtol=1e-12)


@pytest.mark.parametrize("moves", [False, True])
def test_encoder_knows_when_a_series_begins(moves):
    """Its state is that at time 0, so it matters how much later the first observation came."""
    encoder = RecurrentEncoder(3, 4, moves=moves, key=KEY)
    batch = series()
    batch = batch._replace(mask=batch.mask.at[:, 0].set(True))
    now, later, much_later = (
        encode(encoder, TIMES + delay, *batch)[0] for delay in (0.0, 0.2, 0.4)
    )
    for one, other in ((now, later), (later, much_later)):
        assert jnp.abs(one - other).max() > 1e-6


def test_state_of_the_encoder_may_move():
    still, moving = (RecurrentEncoder(3, 4, moves=moves, key=KEY) for moves in (False, True))
    assert still.drift is None
    found = [encode(encoder, TIMES, *series()) for encoder in (still, moving)]
    assert jnp.abs(found[0][0] - found[1][0]).max() > 1e-6


@pytest.mark.slow
def test_inputs_of_the_cell_may_be_projected_before():
    """The same as a gated cell, written down as one would."""
    encoder = RecurrentEncoder(3, 4, key=KEY)
    cell, keys = encoder.cell, jr.split(KEY, 3)
    x, mean, std = jr.normal(keys[0], (5, 7)), *(jr.normal(k, (5, 40)) for k in keys[1:])
    project, advance = cell.prepared()
    found = advance(project(x), mean, std)
    sigmoid = lambda x: 1 / (1 + jnp.exp(-x))
    everything = jnp.concatenate([x, mean, std], axis=-1)
    update, reset = sigmoid(cell.update(everything)), sigmoid(cell.reset(everything))
    new = cell.candidate(jnp.concatenate([x, reset * mean, reset * std], axis=-1))
    expected = [
        (1 - update) * part + update * old
        for part, old in ((new[:, :40], mean), (jnp.abs(new[:, 40:]), std))
    ]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_series_without_observations_is_harmless():
    model, batch = small(), series()
    empty = batch._replace(mask=jnp.zeros_like(batch.mask))
    value, gradient = VALUE_AND_GRADIENT(model, empty)
    assert np.isfinite(value)
    assert all(np.isfinite(x).all() for x in jtu.tree_leaves(gradient))


def test_loss_is_per_observed_value_and_adds_up():
    """The loss of a batch is the mean of those of its series, weighted with their observations."""
    model, batch = without_noise(small(vector_field=no_motion)), series()
    single, before = [], jnp.array(0.0, jnp.float32)
    for i in range(4):
        # Of the same shape as the batch, so that nothing is compiled again.
        alone = batch.mask & (np.arange(4) == i)[:, None, None]
        single.append(outcome_of(model, batch._replace(mask=alone), TASK, before))
    loss, weight = outcome_of(model, batch, TASK, before)
    losses, weights = (np.array(x) for x in zip(*single, strict=True))
    assert float(weight) == weights.sum() == int(batch.mask.sum())
    np.testing.assert_allclose(loss, np.average(losses, weights=weights), rtol=1e-5)


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


def test_penalty_of_latent_paths(known):
    """R_2 of linear dynamics in its closed form; at random times, one for each draw, it has it
    as its mean.
    """
    z0 = jr.normal(KEY, (3, 1, 4))
    matrix = np.asarray(known.model.vector_field.matrix)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    rates = [
        np.mean((np.asarray(z0) @ (matrix @ matrix @ expm(matrix * t)).T) ** 2)
        for t in (nodes + 1) / 2
    ]
    expected = np.dot(weights, rates) / 2

    def penalty(quadrature, key=KEY):
        solve = eqx.tree_at(
            lambda s: (s.regularizer, s.quadrature),
            EXACT,
            (tn.TotalDerivative(2), quadrature),
            is_leaf=lambda x: x is None,
        )
        return known.model.paths(z0, TIMES, solve, key=key)[1].stats["penalty"]

    np.testing.assert_allclose(eqx.filter_jit(penalty)(tn.Augmented()), expected, rtol=1e-7)
    draws = jax.jit(jax.vmap(lambda key: penalty(tn.Sampled(batch_axis=0), key)))
    found = np.asarray(draws(jr.split(KEY, 400)))
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(len(found))


@pytest.mark.slow
def test_what_is_hidden_is_predicted_from_the_rest():
    model, batch = small(), series()
    metrics = eqx.filter_jit(lambda batch: TASK.more_metrics(model, batch, Solve(), KEY))
    found = metrics(batch)
    times = jnp.asarray(TIMES)
    for name in UNSEEN:
        hidden = batch.mask & ~seen_part(name, times)[:, None]
        share = hidden.sum() / batch.mask.sum()
        np.testing.assert_allclose(found[f"{name}_share"], share, rtol=1e-12)
        # Predictions do not know these values: errors are quadratic in them.
        moved = [
            metrics(batch._replace(values=jnp.where(hidden, batch.values + shift, batch.values)))[
                f"{name}_mse"
            ]
            for shift in (0.0, 1.0, 2.0)
        ]
        # Both are solved with the same steps, so to the solver's tolerance.
        np.testing.assert_allclose(moved[0] - 2 * moved[1] + moved[2], 2 * share, rtol=1e-3)


def test_errors_of_hidden_values_are_per_value():
    metrics = {
        "interpolation_mse": np.array([0.5, 0.1]),
        "interpolation_share": np.array([0.5, 0.2]),
    }
    samples = Evaluated(None, metrics, None, None, None, np.array([2.0, 10.0]))
    # One hidden value with a squared error of 1, and two of 1 together.
    assert TASK.summaries(samples) == {"interpolation_mse": pytest.approx(2 / 3)}


def test_errors_are_not_known_where_nothing_was_hidden():
    metrics = {"interpolation_mse": np.zeros(2), "interpolation_share": np.zeros(2)}
    samples = Evaluated(None, metrics, None, None, None, np.ones(2))
    assert np.isnan(TASK.summaries(samples)["interpolation_mse"])
