"""Charging part of the state: the rest does not count, does not matter and does not cost."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import taynode as tn
from benchmarks.counting import count_primitives
from taynode.taylor import derivative_of_part

from . import reference as ref
from .reference import ARGS, close, FIELD, LENGTH, T0, T1, Y0


FIXED = {"dt0": 0.07, "stepsize_controller": dfx.ConstantStepSize(), "max_steps": 32}
Z = Y0[:, :2]
WEIGHT = FIELD.weight[:2, :2]


def first(y):
    return y[0]


def alone(t, z, args):
    """The vector field of z."""
    return jnp.tanh(z @ WEIGHT + args["drive"][:2] * jnp.cos(2 * t)) - 0.3 * z


def flow(t, y, args):
    """The same with the change of its log-density, which is minus the trace of the Jacobian."""
    z, _ = y
    divergence = lambda row: jnp.trace(jax.jacfwd(lambda z: alone(t, z, args))(row))
    return alone(t, z, args), -jax.vmap(divergence)(z)


def wild(t, y, args):
    """The same with something violent instead, of other shape."""
    z, other = y
    return alone(t, z, args), jnp.exp(3 * t) * jnp.sin(100 * other) + 10 * jnp.sum(z**3)


KINDS = {
    "r2": lambda **where: tn.TotalDerivative(2, **where),
    "r3": lambda **where: tn.TotalDerivative(3, **where),
    "kinetic": lambda **where: tn.KineticEnergy(**where),
    "directional": lambda **where: tn.DirectionalDerivative(**where),
    "jacobian": lambda **where: tn.JacobianFrobenius(**where),
    "jacobian forward": lambda **where: tn.JacobianFrobenius(form="jvp", **where),
    "rnode": lambda **where: tn.RNODE(0.3, 0.7, noise="gaussian", **where),
}
# Noise would be another one in a larger state, see the rates below.
IN_SOLVES = ("r2", "kinetic", "directional")


# --- solves


@pytest.mark.parametrize(
    ("quadrature", "larger"),
    [
        pytest.param(
            tn.Augmented(),
            [(flow, jnp.zeros(3)), (wild, jnp.ones((3, 2)))],
            marks=pytest.mark.slow,
        ),
        (tn.Sampled(points=2, batch_axis=0), [(flow, jnp.zeros(3))]),
    ],
)
def test_charging_z_is_charging_the_solve_of_z_alone(quadrature, larger):
    euler = FIXED | {"solver": dfx.Euler()}
    regularizer = {name: KINDS[name]() for name in IN_SOLVES}
    expected = ref.solve(regularizer, quadrature, field=alone, y0=Z, **euler).stats["penalty"]
    regularizer = {name: KINDS[name](where=first) for name in IN_SOLVES}
    for field, rest in larger:
        solved = ref.solve(regularizer, quadrature, field=field, y0=(Z, rest), **euler)
        for name, value in expected.items():
            close(solved.stats["penalty"][name], value, 1e-12, message=name)


@pytest.mark.slow
def test_a_slice_of_an_array_is_charged_with_all_that_moves_it():
    where = lambda y: y[..., 1]
    regularizer = {"r2": tn.TotalDerivative(2, where=where), "k": tn.KineticEnergy(where=where)}
    penalty = ref.solve(regularizer, tn.Augmented()).stats["penalty"]
    rates = {
        "r2": lambda f, t, y, args, _: jnp.mean(ref.derivative(f, 2)(t, y, args)[..., 1] ** 2),
        "k": lambda f, t, y, args, _: jnp.mean(f(t, y, args)[..., 1] ** 2),
    }
    for name, rate in rates.items():
        value = jax.jit(lambda rate=rate: ref.penalty(rate, FIELD, ARGS, Y0, T0, T1))()
        close(penalty[name], value, 1e-8, message=name)


@pytest.mark.slow
def test_leaves_that_are_not_charged_count_through_those_that_are():
    # With (x, v, c): x' = v, v' = c^2. So x'' = c^2 comes from the part that is not penalized.
    def field(t, y, args):
        _, v, c = y
        return v, c**2, jnp.zeros_like(c)

    c = np.array([0.5, 2.0])
    regularizer = tn.TotalDerivative(2, where=first)
    y0 = (jnp.zeros(2), jnp.ones(2), jnp.asarray(c))
    solved = ref.solve(regularizer, tn.Augmented(), field=field, y0=y0, **FIXED)
    close(solved.stats["penalty"], np.mean(c**4) * LENGTH, 1e-12)


# --- rates


@pytest.mark.parametrize("name", KINDS)
def test_the_rate_is_that_of_z_alone(name):
    rest = jr.normal(jr.key(1), (3, 2))
    regularizer = KINDS[name](where=first)
    state = regularizer.init((Z, rest), ARGS, key=jr.key(2))
    slope, rate = regularizer.rate(wild, 0.3, (Z, rest), ARGS, state)
    direction = state[0] if state is not None else None
    _, expected = KINDS[name]().rate(alone, 0.3, Z, ARGS, direction)
    close(rate, expected, 1e-13)
    jax.tree.map(lambda x, y: close(x, y, 1e-13), slope, wild(0.3, (Z, rest), ARGS))


@pytest.mark.parametrize("form", ["vjp", "jvp"])
def test_the_jacobian_of_a_slice_is_that_of_the_slice_with_respect_to_itself(form):
    where = lambda y: y[:, :2]
    regularizer = tn.JacobianFrobenius(form=form, noise="gaussian", where=where)
    noise = regularizer.init(Y0, ARGS, key=jr.key(3))
    _, rate = regularizer.rate(FIELD, 0.3, Y0, ARGS, noise)
    penalized = np.tile([True, True, False], 3)
    block = np.asarray(ref.jacobian(FIELD, 0.3, Y0, ARGS))[np.ix_(penalized, penalized)]
    direction = np.ravel(noise)[penalized]
    product = direction @ block if form == "vjp" else block @ direction
    close(rate, np.mean(product**2), 1e-13)


def test_parts_that_are_not_needed_are_not_swept():
    width = 7
    keys = jr.split(jr.key(0), 4)
    inner, outer, other, back = (jr.normal(key, (width, width)) for key in keys)

    def field(t, y, args):
        z, rest = y
        return jnp.tanh(z @ inner) @ outer, jnp.sin(rest @ other) @ back

    y = (jnp.ones((2, width)), jnp.ones((2, width)))

    def products(order, where):
        sweep = lambda y: derivative_of_part(field, 0.1, y, None, order=order, where=where)
        return count_primitives(sweep, y)["dot_general"]

    for order in (1, 2, 3, 5):
        # Two products for each order of what is penalized, and the slope of the rest.
        assert products(order, lambda y: y) == 4 * order
        assert products(order, lambda y: y[0]) == 2 * order + 2
        assert products(order, lambda y: y[1]) == 2 * order + 2
        assert products(order, lambda y: y[0][:, :1]) == 2 * order + 2


def test_what_the_charged_part_depends_on_is_swept():
    # z depends on v, which depends on w: second derivatives need v, and third ones need w.
    def field(t, y, args):
        _, v, w = y
        return jnp.sin(v), v * w, jnp.cos(w)

    y = tuple(jr.normal(jr.key(4), (3, 2)))
    for order in (2, 3, 4):
        slope, part = derivative_of_part(field, 0.0, y, None, order=order, where=first)
        stacked = lambda t, y, args: jnp.stack(field(t, tuple(y), args))
        expected = ref.derivative(stacked, order)(0.0, jnp.stack(y), None)
        close(part, expected[0], 1e-12)
        close(jnp.stack(slope), stacked(0.0, y, None), 1e-14)


# --- misuse


@pytest.mark.parametrize("nothing", [lambda y: (), lambda y: None, lambda y: {"a": None}])
@pytest.mark.parametrize("name", KINDS)
def test_charging_nothing_is_refused(name, nothing):
    with pytest.raises(ValueError, match="`where`"):
        ref.solve(KINDS[name](where=nothing), tn.Augmented(), **FIXED)


# It gave 0 / 0, and a message about derivatives that overflow.
@pytest.mark.parametrize("name", KINDS)
def test_charging_a_slice_without_elements_is_refused(name):
    regularizer = KINDS[name](where=lambda y: y[:, 3:])
    evaluate = lambda: regularizer.rate(
        FIELD, T0, Y0, ARGS, regularizer.init(Y0, ARGS, key=jr.key(0))
    )
    with pytest.raises(ValueError, match="`where`"):
        evaluate()
