"""A model made cheap: the front, what is chosen, kills, and what must not disturb it."""

import math

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import optax
import pytest

import taynode as tn
from taynode.easing import Point


KEY = jr.key(1)
STEPS = 48
# The same functions in all tests, so that one program is compiled for all.
OPTIMIZER = optax.adam(3e-2)


class Field(eqx.Module):
    """A vector field in the plane that turns points around and squeezes them."""

    inner: jax.Array
    outer: jax.Array

    def __call__(self, t, y, args):
        return jnp.tanh(y @ self.inner) @ self.outer


MODEL = Field(jnp.array([[1.5, 0.5], [-0.5, 1.5]]), jnp.array([[-1.0, 6.0], [-6.0, -1.0]]))


def predict(model, y0, key):
    sol = tn.diffeqsolve(
        dfx.ODETerm(model),
        dfx.Bosh3(),
        t0=0.0,
        t1=1.0,
        dt0=0.1,
        y0=y0,
        stepsize_controller=dfx.PIDController(rtol=1e-3, atol=1e-3),
        regularizer=tn.TotalDerivative(order=2),
        key=key,
        max_steps=64,
        throw=False,
    )
    return sol.ys[-1], sol


LOSS = tn.matching(MODEL, predict)
VALID = jr.normal(jr.key(2), (8, 2))


def batches(step, key):
    return jr.normal(key, (8, 2))


def ease(*, batches=batches, steps=STEPS, **options):
    return tn.ease(MODEL, LOSS, batches, VALID, OPTIMIZER, steps=steps, key=KEY, **options)


@pytest.fixture(scope="module")
def front():
    return ease()


def assert_same(front, other):
    assert len(front.points) == len(other.points)
    for point, again in zip(front.points, other.points, strict=True):
        assert (point.nfe, point.loss, point.weight) == (again.nfe, again.loss, again.weight)
        pairs = zip(jtu.tree_leaves(point.model), jtu.tree_leaves(again.model), strict=True)
        assert all(np.array_equal(x, y) for x, y in pairs)


def test_the_path_becomes_cheaper_and_is_refitted(front):
    kinds = [p.kind for p in front.points]
    assert kinds[0] == "given"
    assert kinds[-3:] == ["refitted"] * 3
    assert set(kinds[1:-3]) == {"scouted"}
    weights = [p.weight for p in front.points if p.kind == "scouted"]
    assert weights == sorted(weights)
    assert front.least_nfe < 0.8 * front.given.nfe
    assert front.points[-1].step <= STEPS


def test_the_numbers_are_those_of_the_models_on_validation_data(front):
    point = front.points[3]
    outputs, sol = predict(point.model, VALID, KEY)
    wanted, _ = predict(MODEL, VALID, KEY)
    assert point.nfe == int(sol.stats["nfe"])
    loss = jnp.mean((outputs - wanted) ** 2) / jnp.var(wanted)
    assert point.loss == pytest.approx(float(loss), rel=1e-12)
    assert front.given.loss == 0.0


def table(*rows):
    return tn.Front(tuple(Point(*row, model=None) for row in rows))


ROWS = table(
    ("given", 100.0, -2.0, 0.0, 0),
    ("scouted", 70.0, -1.97, 0.1, 10),
    ("refitted", 75.0, -2.0, 0.1, 20),
    ("refitted", 60.0, -1.985, 0.2, 30),
    ("refitted", 20.0, math.nan, 0.2, 40),
)


def test_points_are_picked():
    assert ROWS.within(0.01).nfe == 60.0
    assert ROWS.within(0.0).nfe == 75.0
    assert ROWS.within(0.0, atol=0.001).nfe == 75.0
    assert ROWS.at(nfe=99).nfe == 75.0
    assert ROWS.at(nfe=100) is ROWS.given or ROWS.at(nfe=100).loss == ROWS.given.loss
    # Up to 5 % more count as reached.
    assert ROWS.at(nfe=58).nfe == 60.0
    with pytest.raises(ValueError, match="The least that was reached is 60"):
        ROWS.at(nfe=30)
    assert "refitted         60.00" in str(ROWS)


def test_a_front_is_plotted():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    _, ax = pyplot.subplots()
    assert ROWS.plot(ax) is ax
    assert [line.get_label() for line in ax.get_lines()] == ["scouted", "refitted", "given"]
    pyplot.close("all")
