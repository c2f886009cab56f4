"""Arguments per row: what `PerRow` marks goes with the rows of a batch, and the rest is shared."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optimistix as optx
import pytest

import taynode as tn

from . import reference as ref
from .reference import close, KEY, LENGTH, NUM_ROWS, T0, Y0


FIXED = {"dt0": 0.05, "stepsize_controller": dfx.ConstantStepSize(), "max_steps": 32}
CONDITION = jr.normal(jr.key(1), (NUM_ROWS, 2))
SHARED = jr.normal(jr.key(2), (5, 2))
NUMBERS = Y0[:, 2:]


def conditional(t, y, args):
    """Concatenates, as conditional networks do; the number of the row does not move."""
    inputs = jnp.concatenate([y, args["condition"].value], axis=-1)
    moving = jnp.tanh(inputs @ args["weight"]) * jnp.cos(t)
    return jnp.concatenate([moving, jnp.zeros_like(y[:, 2:])], axis=-1)


ADJOINTS = {
    "direct": {"adjoint": dfx.DirectAdjoint()},
    "backsolve": {
        "adjoint": dfx.BacksolveAdjoint(),
        "stepsize_controller": dfx.PIDController(rtol=1e-9, atol=1e-9),
        "max_steps": 256,
    },
}


# The docstring of `Sampled` forbade it, and there was no way to have arguments per row.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["direct", "backsolve"])
def test_conditional_field_is_that_of_each_row_alone(name):
    options = FIXED | ADJOINTS[name]

    def found(condition, weight):
        args = {"condition": tn.PerRow(condition), "weight": weight}
        witness = ref.Witness(tn.TotalDerivative(2))
        quadrature = tn.Sampled(batch_axis=0)
        seen = ref.solve(witness, quadrature, field=conditional, args=args, **options)
        seen = seen.stats["penalty"]
        return seen["charge"], ref.seen_fractions(seen, NUM_ROWS, 1)

    def expected(condition, weight, fractions):
        def charge(fraction, row, condition):
            args = {"condition": tn.PerRow(condition[None]), "weight": weight}
            t = T0 + LENGTH * fraction
            y = ref.state_at(conditional, args, row[None], T0, t)
            return ref.RATES["r2"](conditional, t, y, args, None)

        return LENGTH * jnp.mean(jax.vmap(charge)(fractions[0], Y0, condition))

    compute = jax.jit(jax.value_and_grad(found, argnums=(0, 1), has_aux=True))
    (value, fractions), gradients = compute(CONDITION, SHARED)
    assert len(np.unique(fractions)) == NUM_ROWS
    reference = jax.jit(jax.value_and_grad(expected, argnums=(0, 1)))
    # Steps of 0.05 leave errors of 1e-7.
    close(value, reference(CONDITION, SHARED, fractions)[0], 1e-6)
    for one, other in zip(gradients, reference(CONDITION, SHARED, fractions)[1], strict=True):
        close(one, other, 1e-5, atol=1e-6)


def speeds(t, y, args):
    return jnp.broadcast_to(args.value, y.shape)


def kinetic(args, *, y0=None, batch_axis=0, field=speeds, key=KEY, **options):
    """The kinetic energy of rows that move at speeds of their own, whatever the sampled times."""
    y0 = jnp.zeros((NUM_ROWS, 2)) if y0 is None else y0
    quadrature = tn.Sampled(64, batch_axis=batch_axis)
    # It is exact for straight lines.
    euler = FIXED | {"solver": dfx.Euler(), "y0": y0, "key": key}
    solved = ref.solve(tn.KineticEnergy(), quadrature, field=field, args=args, **euler | options)
    return solved.stats["penalty"]


SPEEDS = jnp.array([1.0, 2.0, 4.0])


def test_rows_may_be_along_any_axis():
    expected = LENGTH * jnp.mean(SPEEDS**2)
    close(kinetic(tn.PerRow(SPEEDS[:, None])), expected, 1e-12)
    rows_last = {"y0": jnp.zeros((2, NUM_ROWS)), "batch_axis": -1}
    close(kinetic(tn.PerRow(SPEEDS[None, :], axis=-1), **rows_last), expected, 1e-12)
    close(kinetic(tn.PerRow(SPEEDS), **rows_last), expected, 1e-12)


def test_rows_under_vmap():
    scales = jnp.array([1.0, 3.0])
    compute = lambda scale, key: kinetic(tn.PerRow(scale * SPEEDS[:, None]), key=key)
    values = jax.vmap(compute)(scales, jr.split(KEY))
    close(values, LENGTH * jnp.mean(SPEEDS**2) * scales**2, 1e-12)


def test_other_arguments_are_shared():
    """Among them arrays with as many entries as there are rows, and functions."""
    args = {"speed": tn.PerRow(SPEEDS[:, None]), "shared": jnp.ones(NUM_ROWS), "scale": jnp.sinh}

    def field(t, y, args):
        assert args["shared"].shape == (NUM_ROWS,)
        return args["scale"](args["speed"].value * jnp.sum(args["shared"])) + 0 * y

    expected = LENGTH * jnp.mean(jnp.sinh(NUM_ROWS * SPEEDS) ** 2)
    close(kinetic(args, field=field), expected, 1e-12)


@pytest.mark.slow
def test_an_event_that_moves_with_an_argument_of_one_row():
    # The first row ends the solve at 0.5 / speed, and all rows are penalized until then.
    event = dfx.Event(lambda t, y, args, **_: y[0, 0] - 0.5, optx.Newton(1e-10, 1e-10))
    interval = {"t0": 0.0, "t1": 1.0, "adjoint": dfx.DirectAdjoint()}
    compute = lambda speeds: kinetic(tn.PerRow(speeds[:, None]), event=event, **interval)
    value, gradient = jax.jit(jax.value_and_grad(compute))(SPEEDS)
    exact = lambda speeds: jnp.mean(speeds**2) * 0.5 / speeds[0]
    # In one of 64 parts of the interval, some rows are penalized and some are not.
    close(value, exact(SPEEDS), 1 / 32)
    close(gradient, jax.grad(exact)(SPEEDS), 1 / 32, atol=0.1)


@pytest.mark.parametrize("value", [SPEEDS[:2, None], jnp.zeros(()), {"a": SPEEDS, "b": Y0[:2]}])
def test_a_wrong_number_of_rows_is_refused(value):
    with pytest.raises(ValueError, match=r"`args.*PerRow.*3 rows of `y0`, got shape"):
        kinetic(tn.PerRow(value))


def test_arguments_per_row_that_are_not_marked_are_refused():
    with pytest.raises(ValueError, match=r"\[\(1, 2\)\] it returns \[\(3, 2\)\].*`tn\.PerRow`"):
        kinetic(SPEEDS[:, None], field=lambda t, y, args: y * args)
    # Here the vector field itself fails.
    with pytest.raises(TypeError) as error:
        kinetic(CONDITION, field=lambda t, y, args: jnp.concatenate([y, args], axis=1)[:, :2])
    assert "`tn.PerRow`" in "".join(error.value.__notes__)


def test_as_many_rows_as_adams_has_past_points():
    # BUG, fixed: the times of these points, which all rows share, were taken for rows.
    solver = tn.solvers.Adams(max_order=5)
    solve = lambda num: tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: -y),
        solver,
        0.0,
        1.0,
        None,
        jnp.ones(num),
        stepsize_controller=dfx.PIDController(1e-3, 1e-3),
        regularizer=tn.TotalDerivative(2),
        quadrature=tn.Sampled(batch_axis=0, points=2),
        key=jax.random.key(0),
    ).stats["penalty"]
    # The rate is y^2 = exp(-2 t), whatever the times.
    assert np.exp(-2.0) * 0.99 < solve(5) < 1.01
