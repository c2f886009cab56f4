"""Continuous normalizing flows against closed forms, Jacobians and each other."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.scipy.linalg import expm

import taynode as tn
from taynode.models import (
    ConcatSquashMLP,
    ContinuousFlow,
    ExactDivergence,
    HutchinsonDivergence,
    sample_part,
    Solve,
    TimeConv,
)


KEY = jr.key(0)
TIGHT = Solve(stepsize_controller=dfx.PIDController(rtol=1e-9, atol=1e-9))


class Linear(eqx.Module):
    matrix: jax.Array

    def __call__(self, t, z, args):
        return z @ self.matrix.T


def mlp(size=2, key=KEY):
    return ConcatSquashMLP((size, 8, size), jnp.tanh, key=key)


def normal_log_prob(z):
    return -0.5 * jnp.sum(z**2 + jnp.log(2 * jnp.pi), axis=-1)


@pytest.mark.parametrize("divergence", [ExactDivergence(), HutchinsonDivergence()])
def test_linear_flow_is_a_normal_distribution(divergence):
    matrix = jnp.array([[0.3, -0.5], [0.4, -0.2]])
    # Random signs give the trace of a diagonal matrix exactly.
    matrix = matrix if isinstance(divergence, ExactDivergence) else jnp.diag(jnp.diag(matrix))
    x = jr.normal(KEY, (5, 2))
    log_prob, _ = ContinuousFlow(Linear(matrix), (2,), divergence).log_prob(x, TIGHT, key=KEY)
    expected = normal_log_prob(x @ expm(matrix).T) + jnp.trace(matrix)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-7)


FIELDS = [(mlp(5), (5,)), (TimeConv((1, 3, 1), jnp.tanh, key=KEY), (4, 3, 1))]


@pytest.mark.parametrize(("field", "shape"), FIELDS, ids=["perceptron", "convolution"])
def test_exact_divergence_is_the_trace_of_the_jacobian(field, shape):
    z, t = jr.normal(KEY, (3, *shape)), jnp.array(0.4)
    slope, divergence = ExactDivergence()(lambda z: field(t, z), z, None, len(shape))
    np.testing.assert_allclose(slope, field(t, z), rtol=1e-12)
    size = int(np.prod(shape))
    for row, found in zip(z, divergence, strict=True):
        jacobian = jax.jacfwd(lambda z: field(t, z))(row).reshape(size, size)
        np.testing.assert_allclose(found, jnp.trace(jacobian), rtol=1e-10)


def test_exact_divergence_evaluates_the_field_in_one_batch():
    """However many dimensions: one product per layer, and one for its tangent."""
    z = jnp.zeros((3, 7))
    field = mlp(7)
    run = lambda z: ExactDivergence()(lambda z: field(jnp.array(0.1), z), z, None, 1)
    assert count_products(run, z) == 4


@pytest.mark.parametrize("noise", ["rademacher", pytest.param("gaussian", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("field", "shape"), FIELDS, ids=["perceptron", "convolution"])
def test_hutchinson_is_unbiased(field, shape, noise):
    z, t = jr.normal(KEY, (1, *shape)), jnp.array(0.4)
    f = lambda z: field(t, z)
    _, exact = ExactDivergence()(f, z, None, len(shape))
    estimate = HutchinsonDivergence(noise)

    def draw(key):
        return estimate(f, z, estimate.draw(z, key), len(shape))[1][0]

    values = np.asarray(jax.vmap(draw)(jr.split(jr.key(1), 4000)))
    error = values.std() / len(values) ** 0.5
    assert abs(values.mean() - exact[0]) < 4 * error
    assert error > 0


@pytest.mark.slow
def test_density_integrates_to_one():
    flow = ContinuousFlow(mlp(), (2,))
    flow = eqx.tree_at(lambda m: m.vector_field.layers[-1].weight, flow, replace_fn=lambda w: 3 * w)
    axis = jnp.linspace(-9.0, 9.0, 91)
    grid = jnp.stack(jnp.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    solve = Solve(solver=tn.solvers.RK4(), num_steps=8)
    log_prob, _ = flow.log_prob(grid, solve)
    density = jnp.exp(log_prob)
    # It is not the normal distribution that it began as.
    assert jnp.abs(density - jnp.exp(normal_log_prob(grid))).max() > 0.01
    assert abs(density.sum() * (axis[1] - axis[0]) ** 2 - 1) < 1e-3


@pytest.mark.slow
def test_there_and_back():
    flow = ContinuousFlow(mlp(), (2,))
    x = 2 * jr.normal(KEY, (20, 2))
    solve = Solve(stepsize_controller=dfx.PIDController(rtol=1e-6, atol=1e-6))
    paths, _ = flow.transport(x, jnp.array([0.0, 0.5, 1.0]), solve)
    np.testing.assert_allclose(paths[0], x)
    back, solution = flow.from_base(paths[-1], solve)
    assert jnp.abs(back - x).max() < 1e-4
    assert solution.stats["nfe"] > 0
    samples, _ = flow.sample(KEY, 7, Solve(solver=dfx.Euler(), num_steps=1))
    assert samples.shape == (7, 2)


def test_samples_have_the_density():
    """Means under samples and under the density agree."""
    flow = ContinuousFlow(Linear(jnp.diag(jnp.array([0.5, -1.0]))), (2,))
    samples, _ = flow.sample(KEY, 20_000)
    expected = jnp.exp(jnp.array([-0.5, 1.0]))
    np.testing.assert_allclose(samples.std(axis=0), expected, rtol=0.03)


def regularizers(**options):
    return {
        "R_2": tn.TotalDerivative(2, **options),
        "R_3": tn.TotalDerivative(3, **options),
        "K": tn.KineticEnergy(**options),
    }


@pytest.mark.slow
def test_charge_is_that_of_the_samples_alone():
    flow = ContinuousFlow(mlp(), (2,))
    x = jr.normal(KEY, (3, 2))
    # The same steps, so the same penalties to rounding.
    steps = {"solver": dfx.Heun(), "num_steps": 2, "quadrature": tn.Augmented()}
    _, solution = flow.log_prob(x, Solve(regularizer=regularizers(where=sample_part), **steps))
    alone = Solve(regularizer=regularizers(), **steps)
    expected = alone(flow.vector_field, x).stats["penalty"]
    assert set(expected) == {"R_2", "R_3", "K"}
    for name, penalty in expected.items():
        np.testing.assert_allclose(solution.stats["penalty"][name], penalty, rtol=1e-11)


def count_products(fun, *args):
    """Matrix products and convolutions after the compiler has merged equal ones."""
    text = jax.jit(fun).lower(*args).compile().as_text()
    return sum(" dot(" in line or " convolution(" in line for line in text.splitlines())


def test_jacobian_penalty_shares_the_product_of_the_divergence():
    flow = ContinuousFlow(mlp(6), (6,), HutchinsonDivergence())
    x = jr.normal(KEY, (4, 6))
    y, noise, t = (x, jnp.zeros(4)), tn.PerRow(flow.divergence.draw(x, KEY)), jnp.array(0.3)
    plain = lambda y: flow.field(t, y, noise)
    for regularizer in (
        tn.JacobianFrobenius(where=sample_part),
        tn.RNODE(1.0, 1.0, where=sample_part),
    ):
        term = tn.regularized(dfx.ODETerm(flow.field), regularizer, y0=y, key=KEY)
        both = lambda y, term=term: term.vf(t, (y, jnp.zeros(())), noise)
        slope, rate = both(y)
        for one, other in zip(slope, plain(y), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        product = flow.divergence.product(lambda z: flow.vector_field(t, z), x, noise.value)[1]
        kinetic = jnp.mean(slope[0] ** 2) if isinstance(regularizer, tn.RNODE) else 0.0
        np.testing.assert_allclose(rate, jnp.mean(product**2) + kinetic, rtol=1e-12)
        assert count_products(both, y) == count_products(plain, y)


# --- the Jacobian's norm, with the direction of the divergence


MATRIX = jnp.array([[0.4, -0.9, 0.3], [0.7, 0.2, -0.5], [-0.6, 0.8, 0.1]])
NUM_ROWS = 8
# One step, since all that is penalized is constant.
ONE_STEP = {"solver": dfx.Euler(), "num_steps": 1}
FROBENIUS = {
    "jacobian": tn.JacobianFrobenius(where=sample_part),
    "rnode": tn.RNODE(0.0, 1.0, where=sample_part),
}


# All rows used the direction of the first one, so that the batch averaged nothing.
def test_jacobian_norm_with_a_time_per_row_is_averaged_over_directions():
    flow = ContinuousFlow(Linear(MATRIX), (3,), HutchinsonDivergence())
    solve = Solve(regularizer=FROBENIUS, quadrature=tn.Sampled(batch_axis=0), **ONE_STEP)
    x = jr.normal(KEY, (NUM_ROWS, 3))
    estimate = lambda key: flow.log_prob(x, solve, key=key)[1].stats["penalty"]
    found = jax.jit(jax.vmap(estimate))(jr.split(jr.key(1), 2000))
    # For random signs, the variance of e M e is twice the sum of squares off the diagonal.
    gram = MATRIX @ MATRIX.T
    off_diagonal = gram - jnp.diag(jnp.diag(gram))
    variance = 2 * jnp.sum(off_diagonal**2) / 3**2 / NUM_ROWS
    for name, values in found.items():
        error = (variance / len(values)) ** 0.5
        assert abs(values.mean() - jnp.sum(MATRIX**2) / 3) < 4 * error, name
        # The standard deviation of an empirical variance is about 5 % here.
        np.testing.assert_allclose(values.var(), variance, rtol=0.2, err_msg=name)


def test_jacobian_norm_has_the_directions_of_all_rows():
    """Value and gradient against closed forms: every row's own direction enters both."""
    x = jr.normal(KEY, (NUM_ROWS, 3))
    noise = HutchinsonDivergence("gaussian").draw(x, KEY)

    def penalty(matrix):
        flow = ContinuousFlow(Linear(matrix), (3,), HutchinsonDivergence("gaussian"))
        solve = Solve(regularizer=FROBENIUS, quadrature=tn.Sampled(batch_axis=0), **ONE_STEP)
        y0 = x, jnp.zeros(NUM_ROWS)
        return solve(flow.field, y0, tn.PerRow(noise), key=KEY).stats["penalty"]

    values, gradients = jax.jit(lambda m: (penalty(m), jax.jacrev(penalty)(m)))(MATRIX)
    covariance = noise.T @ noise / NUM_ROWS
    for name in FROBENIUS:
        np.testing.assert_allclose(
            values[name], jnp.trace(MATRIX.T @ covariance @ MATRIX) / 3, rtol=1e-12
        )
        np.testing.assert_allclose(gradients[name], 2 * covariance @ MATRIX / 3, rtol=1e-12)


def jacobian_rate(regularizer, flow, x, key=KEY):
    y, noise, t = (x, jnp.zeros(len(x))), tn.PerRow(flow.divergence.draw(x, KEY)), jnp.array(0.3)
    term = dfx.ODETerm(flow.field)
    state = regularizer.init(y, noise, key=key)
    return regularizer.rate(term.vf, t, y, noise, state), state


# With a product of the flow's own, `noise` and `where` were ignored.
def test_noise_of_the_jacobian_norm_is_that_which_is_asked_for():
    flow = ContinuousFlow(Linear(MATRIX), (3,), HutchinsonDivergence("gaussian"))
    x = jr.normal(KEY, (2, 3))
    own = flow.divergence.draw(x, KEY)
    of_direction = lambda e: jnp.mean((e @ MATRIX) ** 2)
    for noise in (None, "gaussian"):
        regularizer = tn.JacobianFrobenius(noise=noise, where=sample_part)
        (_, rate), _ = jacobian_rate(regularizer, flow, x, key=jr.key(5))
        np.testing.assert_allclose(rate, of_direction(own), rtol=1e-12)
    regularizer = tn.JacobianFrobenius(noise="rademacher", where=sample_part)
    (slope, rate), (signs, _) = jacobian_rate(regularizer, flow, x, key=jr.key(5))
    np.testing.assert_allclose(jnp.abs(signs), 1.0)
    np.testing.assert_allclose(rate, of_direction(signs), rtol=1e-12)
    np.testing.assert_allclose(slope[0], x @ MATRIX.T, rtol=1e-12)


PARTS = {"coordinates": lambda y: y[0][:, :2], "everything": lambda y: y}


@pytest.mark.parametrize("divergence", [ExactDivergence(), HutchinsonDivergence()])
@pytest.mark.parametrize("part", PARTS)
def test_part_of_the_jacobian_norm_is_that_which_is_asked_for(part, divergence):
    where = PARTS[part]
    flow = ContinuousFlow(mlp(3), (3,), divergence)
    x = jr.normal(KEY, (2, 3))
    (_, rate), direction = jacobian_rate(tn.JacobianFrobenius(where=where), flow, x)
    noise = tn.PerRow(divergence.draw(x, KEY))
    field = lambda y: where(flow.field(jnp.array(0.3), y, noise))
    _, transpose = jax.vjp(field, (x, jnp.zeros(2)))
    product = jax.tree.leaves(where(transpose(where(direction))[0]))
    total, size = sum(jnp.sum(leaf**2) for leaf in product), sum(leaf.size for leaf in product)
    np.testing.assert_allclose(rate, total / size, rtol=1e-12)


# --- gradients


QUADRATURES = {
    "augmented": (tn.Augmented(), dfx.RecursiveCheckpointAdjoint()),
    "sampled": (tn.Sampled(), dfx.RecursiveCheckpointAdjoint()),
    "sampled, own times": (tn.Sampled(batch_axis=0), tn.AcceptedStepAdjoint()),
    "sampled, direct": (tn.Sampled(), dfx.DirectAdjoint()),
    "augmented, backsolve": (tn.Augmented(), dfx.BacksolveAdjoint()),
    "backward, backsolve": (tn.Backward(), dfx.BacksolveAdjoint()),
}
# The others are part of `tests/quadrature/test_gradient_product.py` for any field.
QUICK = ["sampled, own times"]


@pytest.mark.parametrize(
    "name",
    [x if x in QUICK else pytest.param(x, marks=pytest.mark.slow) for x in QUADRATURES],
)
def test_gradients_with_every_quadrature_and_adjoint(name):
    quadrature, adjoint = QUADRATURES[name]
    flow = ContinuousFlow(mlp(3), (3,), HutchinsonDivergence())
    x = jr.normal(KEY, (4, 3))

    # Steps of equal length take less time to compile.
    exactly = {"stepsize_controller": dfx.PIDController(rtol=1e-7, atol=1e-7)}
    steps = {"solver": dfx.Euler(), "num_steps": 2} if name in QUICK else exactly

    def gradient(**options):
        solve = Solve(**steps, **options)

        @eqx.filter_jit
        @eqx.filter_grad
        def loss(flow):
            log_prob, solution = flow.log_prob(x, solve, key=KEY)
            return -jnp.mean(log_prob) + solution.stats.get("penalty", 0.0)

        return loss(flow)

    regularizer = tn.TotalDerivative(2, where=sample_part)
    found = gradient(regularizer=regularizer, quadrature=quadrature, adjoint=adjoint)
    plain = gradient()
    change = jax.tree.map(lambda a, b: jnp.abs(a - b).max(), found, plain)
    assert all(jnp.isfinite(x).all() for x in jax.tree.leaves(found))
    assert max(jax.tree.leaves(change)) > 1e-6
    if quadrature != tn.Sampled() and quadrature != tn.Sampled(batch_axis=0):
        exact = gradient(regularizer=regularizer, quadrature=tn.Augmented())
        difference = jax.tree.map(lambda a, b: jnp.abs(a - b).max(), found, exact)
        assert max(jax.tree.leaves(difference)) < 1e-5


def test_shape_is_checked():
    with pytest.raises(ValueError, match=r"shape \(num, 2\), got \(3, 4\)"):
        ContinuousFlow(mlp(), (2,)).log_prob(jnp.zeros((3, 4)))


def test_hutchinson_needs_a_key():
    with pytest.raises(ValueError, match="needs `key=`"):
        ContinuousFlow(mlp(), (2,), HutchinsonDivergence()).log_prob(jnp.zeros((3, 2)))
