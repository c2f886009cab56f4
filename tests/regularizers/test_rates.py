"""What each regularizer charges: closed forms, the definition, and what noise does on average."""

import functools

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import taynode as tn
from tests.quadrature import reference as ref
from tests.quadrature.reference import close


ORDERS = range(1, 9)


def penalties(regularizer, field, y0, args=None, t0=0.0, t1=1.0, **options):
    """Penalties of an accurate solve."""
    return ref.solve(
        regularizer, tn.Augmented(), field=field, y0=y0, args=args, t0=t0, t1=t1, **options
    ).stats["penalty"]


# --- closed forms


@pytest.mark.slow
def test_exponentials_have_all_derivatives(subtests):
    regularizers = {order: tn.TotalDerivative(order) for order in ORDERS}
    solve = lambda a, y0, t1: penalties(regularizers, lambda t, y, a: a * y, y0, a, t1=t1)
    solve = jax.jit(solve)
    y0, t1 = np.array([1.0, -0.5, 2.0]), 1.3
    for rate in (-1.2, 0.7):
        values = solve(rate, y0, t1)
        integral = (np.exp(2 * rate * t1) - 1) / (2 * rate)
        for order in ORDERS:
            with subtests.test(order=order, rate=rate):
                close(values[order], rate ** (2 * order) * np.mean(y0**2) * integral, 1e-8)


# z' = t z: z = z0 exp(t^2 / 2), and each derivative is z times a polynomial. The directional
# derivative leaves out the part that comes from df/dt.
DRIVEN = {
    "r1": (tn.TotalDerivative(1), lambda t: t),
    "r2": (tn.TotalDerivative(2), lambda t: 1 + t**2),
    "r3": (tn.TotalDerivative(3), lambda t: 3 * t + t**3),
    "r4": (tn.TotalDerivative(4), lambda t: 3 + 6 * t**2 + t**4),
    "kinetic": (tn.KineticEnergy(), lambda t: t),
    "directional": (tn.DirectionalDerivative(), lambda t: t**2),
}


def test_derivatives_include_the_explicit_time(subtests):
    regularizers = {name: regularizer for name, (regularizer, _) in DRIVEN.items()}
    values = penalties(
        regularizers | {"jacobian": tn.JacobianFrobenius()},
        lambda t, y, _: t * y,
        jnp.array([1.0, 2.0]),
        t0=-0.4,
    )
    for name, (_, factor) in DRIVEN.items():
        charge = lambda t, factor=factor: (factor(t) * np.exp(t**2 / 2 - 0.08)) ** 2 * 2.5
        expected, _ = scipy.integrate.quad(charge, -0.4, 1.0, epsabs=1e-13, epsrel=1e-13)
        with subtests.test(name):
            close(values[name], expected, 1e-8)
    with subtests.test("jacobian"):
        # A diagonal matrix times signs: its squares are t^2, whatever the signs.
        close(values["jacobian"], (1.0**3 + 0.4**3) / 3, 1e-8)


def test_polynomials_have_no_derivatives_above_their_degree(subtests):
    regularizers = {order: tn.TotalDerivative(order) for order in range(1, 6)}
    field = lambda t, y, _: jnp.array([3 * t**2, 1 - 2 * t])
    values = penalties(regularizers, field, jnp.array([0.5, -1.0]))
    # The path is (t^3, t - t^2) and a constant.
    expected = {1: (9 / 5 + 1 / 3) / 2, 2: (36 / 3 + 4) / 2, 3: 36 / 2, 4: 0, 5: 0}
    for order, value in expected.items():
        with subtests.test(order=order):
            close(values[order], value, 1e-10)


MATRIX = np.array([[-0.3, 1.2, 0.4], [-1.0, -0.2, 0.7], [0.5, -0.6, 0.1]])


def test_linear_systems():
    # z' = A z: z^(K) = A^K z, and the Jacobian is A everywhere.
    regularizers = {
        "kinetic": tn.KineticEnergy(),
        "directional": tn.DirectionalDerivative(),
        "r3": tn.TotalDerivative(3),
    }
    z0 = np.array([1.0, -2.0, 0.5])
    values = penalties(regularizers, lambda t, y, a: a @ y, jnp.asarray(z0), jnp.asarray(MATRIX))
    for name, order in {"kinetic": 1, "directional": 2, "r3": 3}.items():
        power = np.linalg.matrix_power(MATRIX, order)
        charge = lambda t, power=power: np.mean((power @ scipy.linalg.expm(t * MATRIX) @ z0) ** 2)
        expected, _ = scipy.integrate.quad(charge, 0, 1, epsabs=1e-13, epsrel=1e-13)
        close(values[name], expected, 1e-8, message=name)


# --- the definition


@functools.cache
def rate_of(name):
    def evaluate(t, y, noise):
        return ref.REGULARIZERS[name].rate(ref.FIELD, t, y, ref.ARGS, noise)

    return jax.jit(evaluate)


@pytest.mark.parametrize("name", ref.REGULARIZERS)
def test_rates_are_those_of_the_definition(name):
    for key in jr.split(jr.key(0), 5):
        y, noise = jr.normal(key, (2, 3, 3))
        slope, rate = rate_of(name)(0.3, y, noise)
        close(slope, ref.FIELD(0.3, y, ref.ARGS), 1e-14)
        close(rate, ref.RATES[name](ref.FIELD, 0.3, y, ref.ARGS, noise), 1e-12)


def test_without_time_the_directional_derivative_is_the_second():
    field = lambda t, y, args: jnp.sin(y[::-1]) * y
    y = jnp.array([0.3, -1.2])
    rates = [
        r.rate(field, 0.7, y, None, None)[1] for r in (DRIVEN["directional"][0], DRIVEN["r2"][0])
    ]
    close(*rates, 1e-14)


def test_the_first_derivative_is_the_kinetic_energy():
    y = jr.normal(jr.key(0), (3, 3))
    rates = [
        r.rate(ref.FIELD, 0.7, y, ref.ARGS, None)[1]
        for r in (tn.TotalDerivative(1), tn.KineticEnergy())
    ]
    close(*rates, 1e-14)


def test_leaves_count_by_their_number_of_elements():
    # Squares of 2 in 6 elements and of 5 in one.
    field = lambda t, y, args: {"a": jnp.full((2, 3), 2.0), "b": jnp.array(5.0)}
    y = {"a": jnp.zeros((2, 3)), "b": jnp.array(0.0)}
    close(tn.KineticEnergy().rate(field, 0.0, y, None, None)[1], (6 * 4 + 25) / 7, 1e-15)


# diffrax lets vector fields return what can be broadcast to the state. The elements were counted
# before that, which gave 14.5 here.
def test_slopes_that_diffrax_broadcasts_count_with_all_their_elements():
    field = lambda t, y, args: {"a": jnp.array(2.0), "b": jnp.array(5.0)}
    y = {"a": jnp.zeros((2, 3)), "b": jnp.array(0.0)}
    close(penalties(tn.KineticEnergy(), field, y), (6 * 4 + 25) / 7, 1e-14)


def test_states_of_several_leaves():
    # The same state as a pytree; its derivatives are those of the array.
    split = lambda y: (y[:, 0], {"b": y[:, 1:]})
    merge = lambda y: jnp.concatenate([y[0][:, None], y[1]["b"]], axis=1)
    field = lambda t, y, args: split(ref.FIELD(t, merge(y), args))
    for name in ("r3", "kinetic", "directional", "jacobian"):
        noise = jr.normal(jr.key(1), (3, 3))
        _, rate = ref.REGULARIZERS[name].rate(field, 0.3, split(ref.Y0), ref.ARGS, split(noise))
        expected = ref.RATES[name](ref.FIELD, 0.3, ref.Y0, ref.ARGS, noise)
        close(rate, expected, 1e-12, message=name)


# --- noise


NOISES = ("rademacher", "gaussian")
FORMS = ("vjp", "jvp")
EXACT = np.sum(np.asarray(ref.jacobian(ref.FIELD, 0.3, ref.Y0, ref.ARGS)) ** 2) / ref.Y0.size


def draw(regularizer, key):
    noise = regularizer.init(ref.Y0, ref.ARGS, key=key)
    return noise, regularizer.rate(ref.FIELD, 0.3, ref.Y0, ref.ARGS, noise)[1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("noise", NOISES)
def test_the_jacobian_is_estimated_without_bias(noise, form):
    regularizer = tn.JacobianFrobenius(noise=noise, form=form)
    draws, rates = jax.vmap(lambda key: draw(regularizer, key))(jr.split(jr.key(5), 4000))
    error = np.std(rates) / np.sqrt(len(rates))
    assert abs(np.mean(rates) - EXACT) < 4 * error
    assert error < 0.02 * EXACT
    # Each draw is what the definition gives for its direction.
    matrix = ref.jacobian(ref.FIELD, 0.3, ref.Y0, ref.ARGS)
    flat = draws.reshape(len(draws), -1)
    products = flat @ (matrix if form == "vjp" else matrix.T)
    close(rates, np.mean(np.square(products), axis=1), 1e-12)


@pytest.mark.parametrize("noise", NOISES)
def test_directions_have_unit_covariance(noise):
    regularizer = tn.JacobianFrobenius(noise=noise)
    y0 = {"a": jnp.zeros(3), "b": jnp.zeros((2, 1))}
    draws = jax.vmap(lambda key: regularizer.init(y0, None, key=key))(jr.split(jr.key(6), 4000))
    assert jtu.tree_structure(draws) == jtu.tree_structure(y0)
    flat = np.concatenate([np.reshape(x, (4000, -1)) for x in jtu.tree_leaves(draws)], axis=1)
    close(flat.T @ flat / 4000, np.eye(5), 0, atol=6 * np.sqrt(2 / 4000))
    assert noise == "gaussian" or set(np.unique(flat)) == {-1.0, 1.0}


def test_rnode_is_the_weighted_sum():
    y = ref.Y0
    for form in FORMS:
        rnode = tn.RNODE(0.2, 3.0, noise="gaussian", form=form)
        jacobian = tn.JacobianFrobenius(noise="gaussian", form=form)
        noise = rnode.init(y, ref.ARGS, key=jr.key(7))
        close(noise, jacobian.init(y, ref.ARGS, key=jr.key(7)), 0)
        parts = [
            r.rate(ref.FIELD, 0.3, y, ref.ARGS, noise)[1]
            for r in (tn.KineticEnergy(), jacobian, rnode)
        ]
        close(parts[2], 0.2 * parts[0] + 3.0 * parts[1], 1e-14)


def test_noise_is_held_fixed_during_a_solve():
    # The Jacobian is the same everywhere, so the charge is that of one direction.
    regularizer = tn.JacobianFrobenius(noise="gaussian")
    field = lambda t, y, a: a @ y
    options = {"key": jr.key(8), "dt0": 0.1, "stepsize_controller": dfx.ConstantStepSize()}
    value = penalties(regularizer, field, jnp.ones(3), jnp.asarray(MATRIX), t1=2.0, **options)
    (key,) = jr.split(jr.key(8), 1)
    direction = regularizer.init(jnp.ones(3), None, key=key)
    close(value, 2.0 * np.mean(np.square(direction @ MATRIX)), 1e-12)


# --- properties


SHAPES = {"weight": (2, 4), "time": (4,), "bias": (4,), "out": (4, 2)}
NUMBERS = st.floats(-2, 2, width=32)


def network(t, y, args):
    hidden = jnp.tanh(y @ args["weight"] + t * args["time"] + args["bias"])
    return hidden @ args["out"]


@functools.cache
def network_penalties():
    kinds = ("r2", "r3", "kinetic", "directional")
    regularizers = {name: ref.REGULARIZERS[name] for name in kinds}

    def compute(y0, args):
        options = {"dt0": 0.1, "stepsize_controller": dfx.ConstantStepSize()}
        options["solver"] = dfx.Euler()
        return penalties(regularizers, network, y0, args, **options)

    return jax.jit(compute)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.fixed_dictionaries({k: hnp.arrays(float, s, elements=NUMBERS) for k, s in SHAPES.items()}),
    hnp.arrays(float, (2, 2), elements=NUMBERS),
)
def test_penalties_are_not_negative_and_repeating_the_batch_leaves_them(args, y0):
    once = network_penalties()(y0, args)
    thrice = network_penalties()(np.repeat(y0, 3, axis=0), args)
    for name in once:
        assert once[name] >= 0
        close(thrice[name], once[name], 1e-9, atol=1e-12, message=name)


# --- misuse


@pytest.mark.parametrize("order", [0, -1, True])
def test_orders_are_positive_integers(order):
    with pytest.raises(ValueError, match="`order` must be a Python integer of at least 1"):
        tn.TotalDerivative(order)


@pytest.mark.parametrize("kind", [tn.JacobianFrobenius, tn.RNODE])
def test_unknown_noise_and_forms_are_refused(kind):
    with pytest.raises(ValueError, match=r"`noise` must be one of .*'uniform'"):
        kind(noise="uniform")
    with pytest.raises(ValueError, match=r"`form` must be one of .*'both'"):
        kind(form="both")


@pytest.mark.parametrize("kind", [tn.JacobianFrobenius, tn.RNODE])
def test_noise_needs_a_key_and_shapes(kind):
    with pytest.raises(ValueError, match="`key=`"):
        kind().init(jnp.ones(3), None)
    with pytest.raises(ValueError, match="`y0=`"):
        kind().init(None, None, key=jr.key(0))
