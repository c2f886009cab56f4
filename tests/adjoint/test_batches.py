"""Gradients of batches of solves, in what the samples share and in what they do not."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

import taynode as tn
from tests.adjoint.problems import check_equal, REFERENCE


MATRIX = jr.normal(jr.key(0), (3, 3))
MATRICES = jr.normal(jr.key(1), (2, 3, 3))
Y0 = jr.normal(jr.key(2), (2, 4, 3))
RATES = jnp.linspace(1.0, 3.0, 4)


def end(y0, matrix, rate, adjoint):
    return dfx.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: args[1] * jnp.tanh(args[0] @ y)),
        dfx.Bosh3(),
        0.0,
        2.0,
        0.3,
        y0,
        (matrix, rate),
        stepsize_controller=dfx.PIDController(rtol=1e-4, atol=1e-4),
        adjoint=adjoint,
        max_steps=64,
    ).ys[0]


def total(y0, matrix, rates, adjoint):
    """Of samples with rates of their own, at steps of their own."""
    ends = jax.vmap(lambda y0, rate: end(y0, matrix, rate, adjoint))(y0, rates)
    return jnp.sum(jnp.sin(ends))


def of_groups(y0, matrices, rates, adjoint):
    """Groups of samples with a matrix of their own."""
    return jnp.sum(jax.vmap(lambda y0, m: total(y0, m, rates, adjoint))(y0, matrices))


def along_columns(y0, matrix, rates, adjoint):
    """A rate that is the mean of a named axis, and a batch along the second axis."""
    each = lambda y0, rate: end(y0, matrix, jax.lax.pmean(rate, "batch"), adjoint)
    return jnp.sum(jax.vmap(each, in_axes=(1, 0), axis_name="batch")(y0.T, rates) ** 2)


def mixing(y0, matrix, rates, adjoint):
    """A vector field that sees the mean of a named axis."""

    def each(y0, rate):
        field = lambda t, y, args: args[1] * jnp.tanh(args[0] @ jax.lax.pmean(y, "batch"))
        args = matrix, rate
        steps = dfx.StepTo(jnp.linspace(0.0, 1.0, 6))
        options = {"stepsize_controller": steps, "adjoint": adjoint}
        return dfx.diffeqsolve(dfx.ODETerm(field), dfx.Heun(), 0.0, 1.0, None, y0, args, **options)

    ys = jax.vmap(lambda y0, rate: each(y0, rate).ys[0], axis_name="batch")(y0, rates)
    return jnp.sum(jnp.sin(ys))


CASES = {
    "mixing": (mixing, (Y0[0], MATRIX, RATES)),
    "a batch": (total, (Y0[0], MATRIX, RATES)),
    "groups": (of_groups, (Y0, MATRICES, RATES)),
    "columns": (along_columns, (Y0[0], MATRIX, RATES)),
    "a state for all": (
        lambda y0, matrix, rates, adjoint: jnp.sum(
            jax.vmap(lambda rate: end(y0, matrix, rate, adjoint))(rates)
        ),
        (Y0[0, 0], MATRIX, RATES),
    ),
}


@pytest.mark.parametrize(
    "name",
    ["groups", *(pytest.param(x, marks=pytest.mark.slow) for x in CASES if x != "groups")],
)
@pytest.mark.parametrize("checkpoints", [None, pytest.param(4, marks=pytest.mark.slow)])
def test_gradients_of_batches(name, checkpoints):
    """Those of what samples share are sums over samples."""
    function, inputs = CASES[name]
    run = jax.jit(jax.grad(function, argnums=(0, 1, 2)), static_argnums=3)
    found = run(*inputs, tn.AcceptedStepAdjoint(checkpoints))
    # diffrax's default adjoint does not know the names of axes.
    reference = dfx.DirectAdjoint() if name == "mixing" else REFERENCE
    check_equal(found, run(*inputs, reference), rtol=1e-9)


@pytest.mark.slow
def test_batches_of_gradients():
    """Those of what samples share are gradients of each sample."""
    run = jax.jit(
        jax.vmap(jax.grad(total, argnums=(0, 1)), in_axes=(0, None, None, None)), static_argnums=3
    )
    found, expected = (run(Y0, MATRIX, RATES, x) for x in (tn.AcceptedStepAdjoint(), REFERENCE))
    assert found[1].shape == (2, 3, 3)
    check_equal(found, expected)


def test_parameters_of_samples_have_no_gradients_of_their_own():
    """A shared parameter's gradient is summed in each step, not kept for each sample."""
    gradient = jax.grad(total, argnums=1)
    text = jax.jit(gradient, static_argnums=3).lower(Y0[0], MATRIX, RATES, tn.AcceptedStepAdjoint())
    loops = [line for line in text.as_text().splitlines() if "stablehlo.while" in line]
    assert loops
    assert not any("tensor<4x3x3xf64>" in line for line in text.as_text().splitlines())
