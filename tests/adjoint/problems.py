"""A problem whose solves have all kinds of outputs, and gradients by two adjoints."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optimistix as optx


MATRIX = jnp.array([[0.3, -2.0], [1.9, 0.2]])
PUSH = jnp.array([0.5, -0.2])
Y0 = {"a": jnp.array([1.0, 0.4]), "b": jnp.array(0.3)}
TIMES = jnp.linspace(0.2, 2.2, 5)
REFERENCE = dfx.RecursiveCheckpointAdjoint()
# The first step is far too large, so that some are rejected.
CONTROL = dfx.PIDController(rtol=1e-5, atol=1e-5)
DT0 = 1.5


def everything(ts=TIMES):
    """All kinds of outputs in one solve."""
    return dfx.SaveAt(
        subs=[
            dfx.SubSaveAt(t0=True, t1=True),
            dfx.SubSaveAt(ts=ts, fn=lambda t, y, m: {"scaled": y["a"] * t * m[0, 0]}),
            dfx.SubSaveAt(steps=2, fn=lambda t, y, m: y["b"] ** 2 + t),
        ],
        dense=True,
        solver_state=True,
    )


CROSSING = dfx.Event(lambda t, y, args, **_: y["a"][0] + 0.2, optx.Newton(1e-12, 1e-12))
STOPPING = dfx.Event(lambda t, y, args, **_: y["a"][0] < -0.2)


class Field(eqx.Module):
    """A vector field with an array of its own."""

    push: jax.Array

    def __call__(self, t, y, matrix):
        turn = jnp.tanh(matrix @ y["a"]) * jnp.cos(3 * t) + self.push * jnp.sin(t) * y["b"]
        return {"a": turn, "b": -y["b"] * jnp.sum(y["a"] ** 2)}


def solve(inputs, adjoint, *, solver, saveat, control=CONTROL, event=None, max_steps=256):
    y0, matrix, push, t0, t1 = inputs
    return dfx.diffeqsolve(
        dfx.ODETerm(Field(push)),
        solver,
        t0,
        t1,
        None if isinstance(control, dfx.StepTo) else jnp.where(t0 < t1, DT0, -DT0),
        y0,
        matrix,
        saveat=saveat,
        stepsize_controller=control,
        adjoint=adjoint,
        event=event,
        max_steps=max_steps,
    )


def loss(inputs, adjoint, *, saveat, **options):
    """A smooth function of all outputs of a solve."""
    solution = solve(inputs, adjoint, saveat=saveat, **options)
    finite = [jnp.where(jnp.isfinite(x), x, 0.1) for x in jax.tree.leaves(solution.ys)]
    total = sum(jnp.sum(jnp.tanh(x) ** 2) for x in finite)
    if saveat.dense:
        total = total + sum(jnp.sum(x**2) for x in jax.tree.leaves(solution.evaluate(TIMES[2])))
    if saveat.solver_state:
        floating = eqx.filter(solution.solver_state, eqx.is_inexact_array)
        total = total + sum(jnp.sum(x**2) for x in jax.tree.leaves(floating))
    return total


INPUTS = (Y0, MATRIX, PUSH, jnp.array(0.1), jnp.array(2.3))


def gradient(adjoint, *, inputs=INPUTS, with_times=False, in_axes=None, **options):
    """The loss and its gradient in y0, args, the arrays of the term and, if wanted, the times."""
    differentiated, others = (inputs, ()) if with_times else (inputs[:3], inputs[3:])
    run = jax.value_and_grad(lambda x, rest: loss((*x, *rest), adjoint, **options))
    if in_axes is not None:
        axes = (in_axes, ()) if with_times else (in_axes[:3], in_axes[3:])
        run = jax.vmap(run, in_axes=axes)
    return jax.jit(run)(differentiated, others)


def check_replayed(found, *, inputs=INPUTS, control=CONTROL, event=None, **options):
    """Compare a gradient with central differences of a solve that repeats the accepted steps."""
    # An event ends a solve in one of the steps that it would have made anyway.
    steps = {**options, "saveat": dfx.SaveAt(t0=True, steps=True), "max_steps": 2048}
    times = solve(inputs, REFERENCE, control=control, **steps).ts
    replay = dfx.StepTo(times[jnp.isfinite(times)])
    leaves, structure = jax.tree.flatten(inputs[:3])
    keys = jr.split(jr.key(0), len(leaves))
    direction = [jr.normal(key, x.shape) for key, x in zip(keys, leaves, strict=True)]

    @jax.jit
    def value(size):
        moved = [x + size * d for x, d in zip(leaves, direction, strict=True)]
        moved = (*jax.tree.unflatten(structure, moved), *inputs[3:])
        return loss(moved, REFERENCE, control=replay, event=event, **options)

    size = 1e-5
    expected = (value(size) - value(-size)) / (2 * size)
    _, slopes = found
    slope = sum(jnp.sum(g * d) for g, d in zip(jax.tree.leaves(slopes), direction, strict=True))
    np.testing.assert_allclose(slope, expected, rtol=1e-7)


def check_equal(found, expected, rtol=1e-10):
    """Compare pytrees, relative to the largest element of each leaf."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * np.max(np.abs(other)))
