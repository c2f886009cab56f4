"""Gradients of penalties: for parameters, initial states and times, with every adjoint."""

import functools

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optimistix as optx
import pytest
from jax.flatten_util import ravel_pytree

import taynode as tn

from . import reference as ref
from .reference import ARGS, close, FIELD, Field, NUM_ROWS, T0, T1, Y0


# Everything that one may differentiate for, as one vector: parameters inside the vector field and
# in `args`, the initial state, and both ends of the interval.
POINT, unravel = ravel_pytree((FIELD.weight, ARGS["drive"], Y0, jnp.array(T0), jnp.array(T1)))
NUM_TIMES = 2


def unpack(x):
    """The parts of the vector; without its times, if it lacks them."""
    if len(x) < len(POINT):
        weight, drive, y0, _, _ = unravel(jnp.concatenate([x, jnp.array([T0, T1])]))
        return Field(weight), {"drive": drive}, y0, T0, T1
    weight, drive, y0, t0, t1 = unravel(x)
    return Field(weight), {"drive": drive}, y0, t0, t1


# The weights of penalties in a loss. They differ, so that none can be mistaken for another, and the
# largest parts of the gradient are 0.07 to 0.28, so that none is lost in the sum.
WEIGHTS = {
    "r2": 0.3,
    "r3": 0.05,
    "kinetic": 1.1,
    "jacobian": 0.7,
    "rnode": 0.9,
    "directional": 0.5,
}


def loss_of(final, charges):
    """It depends on the end of the path and on the way to it."""
    return jnp.sum(final) + sum(WEIGHTS[name] * charge for name, charge in charges.items())


def loss(x, quadrature, adjoint, names=("r2",), **options):
    """The loss by the library, and what was penalized, where."""
    field, args, y0, t0, t1 = unpack(x)
    solved = ref.solve(
        witnesses(quadrature, names),
        quadrature,
        **{"field": field, "args": args, "y0": y0, "t0": t0, "t1": t1, "adjoint": adjoint}
        | options,
    )
    seen = jax.lax.stop_gradient(solved.stats["penalty"])
    return loss_of(solved.ys[-1], charges_of(solved)), seen


def witnesses(quadrature, names):
    points = getattr(quadrature, "points", 1)
    return {name: ref.Witness(ref.REGULARIZERS[name], points) for name in names}


def charges_of(solved):
    return {name: seen["charge"] for name, seen in solved.stats["penalty"].items()}


@functools.cache
def reference_gradient(names=("r2",)):
    """The gradient by definition, as a function of the points of quadrature and the noise."""

    def reference_loss(x, fractions, weights, noise):
        field, args, y0, t0, t1 = unpack(x)
        final = ref.state_at(field, args, y0, t0, t1)
        where = field, args, y0, t0, t1
        penalty = lambda name: ref.penalty(ref.RATES[name], *where, noise[name], fractions, weights)
        return loss_of(final, {name: penalty(name) for name in names})

    return jax.jit(jax.value_and_grad(reference_loss))


def expected(quadrature, seen):
    """The gradient by definition, given the noise and the times that a solve has used."""
    noise = {
        name: ref.seen_noise(each, NUM_ROWS) if "noise" in each else jnp.zeros_like(Y0)
        for name, each in seen.items()
    }
    if isinstance(quadrature, tn.Sampled):
        # All penalties are evaluated at the same times.
        fractions = ref.seen_fractions(next(iter(seen.values())), NUM_ROWS, quadrature.points)
        weights = jnp.full(quadrature.points, 1 / quadrature.points)
    else:
        fractions, weights = ref.GAUSS, ref.GAUSS_WEIGHTS
    return reference_gradient(tuple(seen))(POINT, fractions, weights, noise)[1]


def gradient_of(quadrature, adjoint, point=POINT, names=("r2",), **options):
    """Gradient and what was seen. `BacksolveAdjoint` has no gradient for times."""
    if isinstance(adjoint, dfx.BacksolveAdjoint):
        point = POINT[:-NUM_TIMES]
    differentiate = jax.jacfwd if isinstance(adjoint, dfx.ForwardMode) else jax.grad
    compute = differentiate(lambda x: loss(x, quadrature, adjoint, names, **options), has_aux=True)
    return jax.jit(compute)(point)


def check_gradient(gradient, reference, rtol):
    close(gradient, reference[: len(gradient)], 0, atol=rtol * np.max(np.abs(reference)))


# --- against the definition; `test_gradient_product.py` has all adjoints, with a closed form


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), ref.ALLOWED)
def test_the_full_product_of_gradients(name, kind):
    """Of all regularizers in one solve."""
    names = tuple(ref.REGULARIZERS)
    quadrature, adjoint = ref.QUADRATURES[name], ref.adjoints(1e-10)[kind]
    point = POINT[:-NUM_TIMES] if name == "backward" else POINT
    gradient, seen = gradient_of(quadrature, adjoint, point, names)
    if name == "backward":
        # Noise is not integrated forwards; it is that of the same key.
        _, seen = jax.jit(
            lambda x: loss(x, tn.Augmented(), dfx.RecursiveCheckpointAdjoint(), names)
        )(POINT)
    check_gradient(gradient, expected(quadrature, seen), 1e-6)


def test_the_reference_gradient_agrees_with_finite_differences():
    noise = {"r2": jnp.zeros_like(Y0)}
    direction = jr.normal(jr.key(0), POINT.shape)
    compute = lambda x: reference_gradient()(x, ref.GAUSS, ref.GAUSS_WEIGHTS, noise)
    _, gradient = compute(POINT)
    h = 1e-4
    value = lambda s: compute(POINT + s * direction)[0]
    slope = (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)
    close(gradient @ direction, slope, 1e-10)


@pytest.mark.slow
def test_gradients_agree_with_finite_differences():
    # With fixed steps the solve is a smooth function of everything.
    quadrature = ref.QUADRATURES["rows"]
    fixed = {"dt0": 0.07, "stepsize_controller": dfx.ConstantStepSize(), "max_steps": 32}
    adjoint = dfx.RecursiveCheckpointAdjoint()
    gradient, _ = gradient_of(quadrature, adjoint, **fixed)
    value = jax.jit(lambda x: loss(x, quadrature, adjoint, **fixed)[0])
    for key in jr.split(jr.key(1), 3):
        direction = jr.normal(key, POINT.shape)
        h = 1e-5
        slope = (value(POINT + h * direction) - value(POINT - h * direction)) / (2 * h)
        close(gradient @ direction, slope, 1e-8)


@pytest.mark.slow
def test_single_precision():
    point = POINT.astype(jnp.float32)

    def single(x):
        weight, drive, y0 = x[:9].reshape(3, 3), x[9:12], x[12:21].reshape(3, 3)
        solved = ref.solve(
            tn.TotalDerivative(2),
            tn.Augmented(),
            field=Field(weight),
            args={"drive": drive},
            y0=y0,
            t0=jnp.float32(T0),
            t1=jnp.float32(T1),
            dt0=jnp.float32(0.03),
            stepsize_controller=dfx.ConstantStepSize(),
        )
        return loss_of(solved.ys[-1], {"r2": solved.stats["penalty"]})

    gradient = jax.jit(jax.grad(single))(point[:-NUM_TIMES])
    assert gradient.dtype == "float32"
    check_gradient(gradient, expected(tn.Augmented(), {"r2": {}}), 1e-5)


# --- under vmap, through closures, for weights


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "adjoint"),
    [
        ("augmented", dfx.RecursiveCheckpointAdjoint()),
        ("backward", dfx.BacksolveAdjoint()),
    ],
)
def test_gradients_per_sample_under_vmap_add_up_to_that_of_the_batch(name, adjoint):
    def sample_loss(parameters, row):
        weight, drive = parameters
        solved = ref.solve(
            tn.TotalDerivative(2),
            ref.QUADRATURES[name],
            field=Field(weight),
            args={"drive": drive},
            y0=row[None],
            adjoint=adjoint,
        )
        return jnp.sum(solved.ys[-1]) + 0.3 / NUM_ROWS * solved.stats["penalty"]

    per_sample = jax.vmap(jax.grad(sample_loss, argnums=(0, 1)), in_axes=(None, 0))
    parameters, rows = jax.jit(per_sample)((FIELD.weight, ARGS["drive"]), Y0)
    gradient = ravel_pytree((*(jnp.sum(p, 0) for p in parameters), rows))[0]
    check_gradient(gradient, expected(tn.Augmented(), {"r2": {}}), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["augmented", "sampled", "backward"],
)
def test_vector_fields_may_close_over_parameters(name):
    quadrature = ref.QUADRATURES[name]

    def closed_loss(x):
        field, args, y0, t0, t1 = unpack(x)
        closure = lambda t, y, _: field(t, y, args)
        solved = ref.solve(
            witnesses(quadrature, ("r2",)),
            quadrature,
            field=closure,
            args=None,
            y0=y0,
            t0=t0,
            t1=t1,
            adjoint=dfx.DirectAdjoint(),
        )
        return loss_of(solved.ys[-1], charges_of(solved)), solved.stats["penalty"]

    gradient, seen = jax.jit(jax.grad(closed_loss, has_aux=True))(POINT[:-NUM_TIMES])
    check_gradient(gradient, expected(quadrature, seen), 1e-6)


@pytest.mark.slow
def test_weights_of_a_regularizer_have_gradients_in_a_backward_solve():
    # z' = a z: the rates are a^2 z^2 and a^2.
    def weighted(kinetic, jacobian):
        solved = ref.solve(
            tn.RNODE(kinetic, jacobian),
            tn.Augmented(),
            field=lambda t, y, a: a * y,
            args=jnp.array(0.7),
            y0=jnp.array([1.0]),
            t0=0.0,
            t1=1.0,
            adjoint=dfx.BacksolveAdjoint(),
        )
        return solved.stats["penalty"]

    gradient = jax.jit(jax.grad(weighted, argnums=(0, 1)))(jnp.array(0.1), jnp.array(0.2))
    close(gradient, (0.7 * (np.exp(1.4) - 1) / 2, 0.7**2), 1e-8)


@pytest.mark.parametrize("name", ["t0", "t1"])
def test_backward_refuses_gradients_for_times(name):
    # They were silently wrong: the solver multiplies the rate, which reads 0, by its step.
    solve = lambda t: ref.solve(tn.KineticEnergy(), tn.Backward(), **{name: t}).stats["penalty"]
    with pytest.raises(RuntimeError, match=rf"Backward.*`{name}` cannot be autodifferentiated"):
        jax.grad(solve)(0.7)


def test_backward_refuses_forward_mode():
    with pytest.raises(ValueError, match=r"Backward.*ForwardMode"):
        ref.solve(tn.TotalDerivative(2), tn.Backward(), adjoint=dfx.ForwardMode())


# --- events


def growth(quadrature):
    """K of z' = a z until z = 2, as a function of a and of the interval."""
    event = dfx.Event(lambda t, y, args, **others: y[0, 0] - 2.0, optx.Newton(1e-10, 1e-10))

    def penalty(a, t0, t1):
        solved = ref.solve(
            tn.KineticEnergy(),
            quadrature,
            field=lambda t, y, a: a * y,
            args=a,
            y0=jnp.array([[1.0]]),
            t0=t0,
            t1=t1,
            tol=1e-8,
            event=event,
            # Takes half as long to compile as the default.
            adjoint=dfx.DirectAdjoint(),
        )
        return solved.stats["penalty"]

    return penalty


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quadrature", "rtol"),
    [
        (tn.Augmented(), 1e-5),
        (tn.Sampled(points=256), 0.02),
    ],
)
def test_gradients_know_that_an_event_moves(quadrature, rtol):
    a, t0 = 0.7, 0.1
    compute = jax.jit(jax.value_and_grad(growth(quadrature), argnums=(0, 1, 2)))
    value, gradient = compute(jnp.array(a), jnp.array(t0), jnp.array(3.0))
    close(value, 3 * a / 2, rtol)
    # That of `Sampled` was 4.27 on average for a, and 0.65 for the end of the interval.
    close(gradient, (3 / 2, 0, 0), rtol, atol=rtol)
    # The event does not happen if the interval ends before.
    length = 0.6
    grown = np.exp(2 * a * length)
    value, gradient = compute(jnp.array(a), jnp.array(t0), jnp.array(t0 + length))
    close(value, a * (grown - 1) / 2, rtol)
    rate = a**2 * grown
    close(gradient, ((grown - 1) / 2 + length * rate / a, -rate, rate), rtol)


def test_backward_refuses_events_that_move():
    # The gradient was silently 4.27 instead of 1.5.
    with pytest.raises(ValueError, match=r"Backward.*`root_finder`"):
        growth(tn.Backward())(jnp.array(0.7), 0.0, 3.0)


# The rate was evaluated at times that were not reached, too. Where it is not finite, the gradient
# is NaN, even if nothing uses it.
@pytest.mark.parametrize("name", ["sampled", pytest.param("rows", marks=pytest.mark.slow)])
def test_times_behind_an_event_do_not_make_the_gradient_nan(name):
    event = dfx.Event(lambda t, y, args, **others: t > 0.5)

    def penalty(a):
        solved = ref.solve(
            tn.KineticEnergy(),
            ref.QUADRATURES[name],
            field=lambda t, y, a: a * y * jnp.sqrt(1.0 - t),
            args=a,
            y0=jnp.array([[1.0], [0.5]]),
            t0=0.0,
            t1=4.0,
            dt0=0.1,
            solver=dfx.Euler(),
            stepsize_controller=dfx.ConstantStepSize(),
            event=event,
        )
        return solved.stats["penalty"]

    assert jnp.isfinite(jax.jit(jax.grad(penalty))(jnp.array(0.7)))
