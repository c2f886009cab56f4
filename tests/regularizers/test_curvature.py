"""How fast a path turns: on circles and lines, and against the turn of its direction."""

import jax
import jax.numpy as jnp
import numpy as np

import taynode as tn
from tests.quadrature.reference import close


def test_a_circle_turns_by_its_rate_and_a_straight_path_does_not():
    turning = lambda t, y, rate: rate * jnp.array([-y[1], y[0]])
    speeding = lambda t, y, rate: rate * y
    for vector_field, expected in ((turning, 2.5**2), (speeding, 0.0)):
        _, rate = tn.Curvature().rate(vector_field, 0.0, jnp.array([0.6, 1.1]), 2.5, None)
        close(rate, expected, 1e-12, 1e-12)
    # It has a gradient at rest, too.
    at_rest = jax.grad(lambda y: tn.Curvature().rate(turning, 0.0, y, 2.5, None)[1])
    assert np.all(np.isfinite(at_rest(jnp.zeros(2))))


def field(t, y, a):
    return jnp.sin(a * y) + jnp.cos(3 * t) * y[::-1]


def turning(a, y, t=0.4):
    """The squared speed of the direction of the path, by its definition."""

    def direction(t, y):
        velocity = field(t, y, a)
        return velocity / jnp.linalg.norm(velocity)

    return jnp.sum(jax.jvp(direction, (t, y), (1.0, field(t, y, a)))[1] ** 2)


def test_it_is_the_turn_of_the_direction_and_so_is_its_gradient():
    y, charged = jnp.array([1.0, -0.5, 2.0]), jnp.array([1.0, 1.0, 0.0])

    @jax.jit
    def found(a, y):
        return tn.Curvature().rate(field, 0.4, y, a, None)[1]

    close(found(1.3, y), turning(1.3, y), 1e-12)
    h = 1e-5
    for i, gradient in enumerate(jax.grad(found, argnums=(0, 1))(1.3, y)):
        moved = charged if i else 1.0
        at = lambda s, i=i, d=moved: turning(*((1.3, y + s * d) if i else (1.3 + s, y)))
        close(jnp.sum(gradient * moved), (at(h) - at(-h)) / (2 * h), 1e-7)


def test_the_unit_of_the_state_does_not_matter():
    scaled = lambda t, y, a: 1e3 * field(t, y / 1e3, a)
    y = jnp.array([1.0, -0.5, 2.0])
    rates = [
        tn.Curvature().rate(f, 0.4, x, 1.3, None)[1] for f, x in ((field, y), (scaled, 1e3 * y))
    ]
    close(*rates, 1e-12)


def test_a_straight_path_is_free_also_where_it_starts_from_rest():
    # BUG, fixed: the speed was zero but the acceleration was not, and their ratio was 1e19.
    starting = lambda t, y, a: a * t * jnp.array([1.0, 2.0])
    rate = lambda a, t: tn.penalty_at(tn.Curvature(), starting, t, jnp.zeros(2), a)[1]
    for t in (0.0, 1e-9, 0.5):
        value, gradient = jax.value_and_grad(rate)(1.5, t)
        close(value, 0.0, 1e-12, 1e-12)
        close(gradient, 0.0, 1e-12, 1e-12)
