"""Controlled differential equations: a regularizer sees dy/dt = f(y) dX/dt."""

import itertools

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.integrate

import taynode as tn
from tests.integration.problems import counts, distance, KEY, pid


KNOTS = np.array([0.0, 0.21, 0.4, 0.77, 1.1, 1.5])
VALUES = np.array([0.0, 0.8, 0.3, 0.9, -0.4, 0.1])
NAMES = ["linear", "cubic"]
BEND = np.array([[[0.9, -0.4], [0.3, 0.8], [-0.5, 0.2]], [[0.1, 0.7], [-0.8, 0.4], [0.6, -0.3]]])


def path(name, values=VALUES):
    knots, values = jnp.asarray(KNOTS), jnp.asarray(values)
    if name == "linear":
        return dfx.LinearInterpolation(knots, values)
    return dfx.CubicInterpolation(knots, dfx.backward_hermite_coefficients(knots, values))


def growth(t, y, args):
    """With a control X, the solution is y0 exp(X - X0)."""
    return y


def bending(t, y, args):
    """Two states and three channels."""
    return jnp.tanh(jnp.tensordot(jnp.asarray(BEND), y, axes=((2,), (0,))) + args)


def channels(name):
    return path(name, np.stack([VALUES, np.sin(3 * KNOTS), KNOTS], axis=1))


CUBIC = [np.asarray(x) for x in path("cubic").coeffs]


def control_at(name, t):
    """The control and its first three derivatives inside of a piece, in NumPy."""
    i = np.clip(np.searchsorted(KNOTS, t, side="left") - 1, 0, len(KNOTS) - 2)
    s = t - KNOTS[i]
    if name == "linear":
        slope = (VALUES[i + 1] - VALUES[i]) / (KNOTS[i + 1] - KNOTS[i])
        return VALUES[i] + slope * s, slope, 0.0, 0.0
    d, c, b, a = (x[i] for x in CUBIC)
    return a + s * (b + s * (c + s * d)), b + s * (2 * c + 3 * d * s), 2 * c + 6 * d * s, 6 * d


def closed_form(name, t, y):
    """The first three derivatives of y0 exp(X - X0)."""
    _, x1, x2, x3 = control_at(name, t)
    return np.array([x1, x2 + x1**2, x3 + 3 * x1 * x2 + x1**3]) * y


@pytest.mark.parametrize("name", NAMES)
def test_total_derivatives_are_those_of_a_closed_form(name):
    """At knots, too, where they are those of the piece before."""
    field = dfx.ControlTerm(growth, path(name)).to_ode().vf
    compute = jax.jit(lambda t: tn.solution_derivatives(field, t, jnp.array(1.3), None, order=3))
    for t in (*KNOTS, 0.1, 0.5, 1.3):
        np.testing.assert_allclose(compute(t), closed_form(name, t, 1.3), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_total_derivatives_are_those_of_nested_jvp(name):
    term = dfx.ControlTerm(bending, channels(name)).to_ode()
    field = lambda t, y: term.vf(t, y, 0.2)

    def along(function):
        return lambda t, y: jax.jvp(function, (t, y), (jnp.ones_like(t), field(t, y)))[1]

    @jax.jit
    def both(t, y):
        functions = [field]
        for _ in range(3):
            functions.append(along(functions[-1]))
        return tn.solution_derivatives(term.vf, t, y, 0.2, order=4), [f(t, y) for f in functions]

    for t in (0.0, 0.3, 0.4, 1.2):
        ours, nested = both(jnp.array(t), jnp.array([0.3, -0.7]))
        np.testing.assert_allclose(ours, nested, rtol=1e-10, atol=1e-10)


def knowing(tol=1e-10):
    """Steps end at knots, behind which the slope is evaluated anew."""
    return dfx.ClipStepSizeController(pid(tol), jump_ts=jnp.asarray(KNOTS[1:-1]))


def solve(term, quadrature=None, *, lib=tn, y0=1.3, args=None, key=KEY, order=2, **options):
    options = {"stepsize_controller": knowing(), "solver": dfx.Tsit5()} | options
    if quadrature is not None:
        options |= dict(regularizer=tn.TotalDerivative(order), quadrature=quadrature, key=key)
    t0, t1, dt0 = jnp.array(0.0), jnp.array(1.5), jnp.array(0.05)
    return lib.diffeqsolve(term, t0=t0, t1=t1, dt0=dt0, y0=jnp.asarray(y0), args=args, **options)


def penalty(name, order):
    """By SciPy, piece by piece, from the closed form."""

    def rate(t):
        y = 1.3 * np.exp(control_at(name, t)[0] - VALUES[0])
        return closed_form(name, t, y)[order - 1] ** 2

    pieces = itertools.pairwise(KNOTS)
    return sum(scipy.integrate.quad(rate, a, b, epsabs=1e-12, epsrel=1e-12)[0] for a, b in pieces)


# Increments of a control that is curved within a step make an error of second order, so those of
# the cubic one are apart.
@pytest.mark.parametrize(("name", "to_ode"), [("linear", False), ("linear", True), ("cubic", True)])
def test_the_penalty_is_the_integral_of_the_closed_form(name, to_ode):
    term = dfx.ControlTerm(growth, path(name))
    sol = solve(term.to_ode() if to_ode else term, tn.Augmented())
    assert sol.stats["penalty"] == pytest.approx(penalty(name, 2), rel=1e-7)


@pytest.mark.parametrize(("name", "to_ode"), [("linear", False), ("cubic", True)])
def test_the_mean_of_sampled_penalties_is_the_integral(name, to_ode):
    term = dfx.ControlTerm(growth, path(name))
    term = term.to_ode() if to_ode else term
    options = dict(stepsize_controller=knowing(1e-5))
    estimate = lambda key: solve(term, tn.Sampled(4), key=key, **options).stats["penalty"]
    values = jax.jit(jax.vmap(estimate))(jr.split(KEY, 500))
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - penalty(name, 2)) < 4 * error
    assert error < 0.1 * penalty(name, 2)


def test_increments_of_a_curved_control_converge_to_the_same_penalty():
    term, expected = dfx.ControlTerm(growth, path("cubic")), penalty("cubic", 2)
    fine = dfx.StepTo(jnp.asarray(np.linspace(0.0, 1.5, 3001)))

    def run(quadrature):
        return tn.diffeqsolve(
            term, dfx.Midpoint(), 0.0, 1.5, None, jnp.array(1.3), stepsize_controller=fine,
            regularizer=tn.TotalDerivative(2), quadrature=quadrature, key=KEY,
        )  # fmt: skip

    assert run(tn.Augmented()).stats["penalty"] == pytest.approx(expected, rel=2e-5)


def check_steps_and_values(name, to_ode, knows, quadrature):
    term = dfx.ControlTerm(bending, channels(name))
    term = term.to_ode() if to_ode else term
    options = dict(
        y0=np.array([0.3, -0.7]),
        args=0.2,
        stepsize_controller=knowing(1e-4) if knows else pid(1e-4),
        saveat=dfx.SaveAt(ts=jnp.array([0.4, 1.0]), t1=True),
    )
    plain, sol = solve(term, lib=dfx, **options), solve(term, quadrature, **options)
    assert counts(sol) == counts(plain)
    assert distance(sol.ys, plain.ys) < 1e-13
    assert sol.stats["nfe_exact"] is True


@pytest.mark.parametrize("quadrature", [tn.Sampled(), tn.Augmented()], ids=["sampled", "augmented"])
def test_steps_and_values_are_those_of_diffrax(quadrature):
    check_steps_and_values("cubic", False, False, quadrature)


@pytest.mark.slow
@pytest.mark.parametrize("quadrature", [None, tn.Sampled(), tn.Augmented()])
@pytest.mark.parametrize("knows", [False, True])
@pytest.mark.parametrize("to_ode", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_steps_and_values_of_all_kinds_are_those_of_diffrax(name, to_ode, knows, quadrature):
    check_steps_and_values(name, to_ode, knows, quadrature)


@pytest.mark.parametrize(
    "quadrature",
    [
        pytest.param(tn.Sampled(), id="sampled"),
        pytest.param(tn.Augmented(), id="augmented", marks=pytest.mark.slow),
    ],
)
def test_gradients_are_finite_differences(quadrature):
    """With respect to parameters, the start and the values of the control, on fixed steps."""
    grid = dfx.StepTo(jnp.asarray(np.unique([*KNOTS, *np.linspace(0.0, 1.5, 21)])))

    @jax.jit
    def loss(shift, y0, values):
        term = dfx.ControlTerm(bending, path("linear", values))
        sol = tn.diffeqsolve(
            term, dfx.Tsit5(), 0.0, 1.5, None, y0, shift, stepsize_controller=grid,
            regularizer=tn.TotalDerivative(2), quadrature=quadrature, key=KEY,
        )  # fmt: skip
        return jnp.sum(sol.ys[-1]) + sol.stats["penalty"]

    point = 0.2, np.array([0.3, -0.7]), np.asarray(channels("linear").ys)
    gradient = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(*map(jnp.asarray, point))
    random = np.random.default_rng(0)
    direction = [random.standard_normal(np.shape(x)) for x in point]
    moved = lambda h: loss(*(x + h * d for x, d in zip(point, direction, strict=True)))
    difference = (8 * (moved(1e-3) - moved(-1e-3)) - (moved(2e-3) - moved(-2e-3))) / 12e-3
    slope = sum(np.sum(g * d) for g, d in zip(gradient, direction, strict=True))
    assert slope == pytest.approx(float(difference), rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("quadrature", [tn.Sampled(), tn.Backward()], ids=["sampled", "backward"])
def test_backsolve_has_the_same_gradient(quadrature):
    """As an equation of the derivative, since a larger state has no increments."""

    def gradient(adjoint, quadrature):
        def loss(shift):
            term = dfx.ControlTerm(bending, channels("linear")).to_ode()
            options = dict(stepsize_controller=knowing(1e-8), adjoint=adjoint)
            return solve(term, quadrature, y0=[0.3, -0.7], args=shift, **options).stats["penalty"]

        return jax.jit(jax.grad(loss))(jnp.array(0.2))

    expected = gradient(
        tn.AcceptedStepAdjoint(),
        quadrature if isinstance(quadrature, tn.Sampled) else tn.Augmented(),
    )
    assert float(gradient(dfx.BacksolveAdjoint(), quadrature)) == pytest.approx(
        float(expected), rel=1e-4
    )


class Squares(dfx.AbstractPath):
    """A path of one's own, whose derivative follows from its values."""

    t0: float = 0.0
    t1: float = 1.5

    def evaluate(self, t0, t1=None, left=True):
        return t0**2 if t1 is None else t1**2 - t0**2


def test_a_path_of_ones_own_has_the_derivative_of_its_values():
    sol = solve(dfx.ControlTerm(growth, Squares()).to_ode(), tn.Augmented(), order=1)
    rate = lambda t: (2 * t * 1.3 * np.exp(t**2)) ** 2
    expected, _ = scipy.integrate.quad(rate, 0.0, 1.5)
    assert sol.stats["penalty"] == pytest.approx(expected, rel=1e-7)


def test_an_operator_as_a_vector_field():
    import lineax as lx

    field = lambda t, y, args: lx.DiagonalLinearOperator(jnp.stack([y[0], 2 * y[1]]))
    control = path("cubic", np.stack([VALUES, VALUES], axis=1))
    term = dfx.ControlTerm(field, control)
    derivatives = tn.solution_derivatives(term.to_ode().vf, 0.5, jnp.ones(2), None, order=3)
    expected = closed_form("cubic", 0.5, 1.0)
    np.testing.assert_allclose(np.stack(derivatives)[:, 0], expected, rtol=1e-11)
    assert np.isfinite(solve(term, tn.Sampled(), y0=[1.0, 1.0]).stats["penalty"])


BROWNIAN = dfx.VirtualBrownianTree(0.0, 1.5, 0.1, (), jr.key(0))


@pytest.mark.parametrize("to_ode", [False, True])
@pytest.mark.parametrize(
    ("control", "message"),
    [
        (BROWNIAN, r"`VirtualBrownianTree` drives has none.*MultiTerm.*LinearInterpolation"),
        (lambda t0, t1: t1**2 - t0**2, r"a control with a derivative.*CubicInterpolation"),
    ],
    ids=["brownian", "increments"],
)
def test_a_control_without_a_derivative_is_refused(control, message, to_ode):
    term = dfx.ControlTerm(growth, control)
    with pytest.raises(TypeError, match=message):
        solve(term.to_ode() if to_ode else term, tn.Sampled())


def test_what_needs_an_ordinary_equation_says_so():
    term = dfx.ControlTerm(growth, path("linear"))
    with pytest.raises(ValueError, match=r"got a `ControlTerm`.*term\.to_ode\(\)"):
        solve(term, tn.Backward())
    with pytest.raises(TypeError, match="ControlTerm"):
        tn.regularized(term, tn.KineticEnergy())
    with pytest.raises(ValueError, match=r"`terms` is a `ControlTerm`.*BacksolveAdjoint"):
        solve(term, tn.Augmented(), adjoint=dfx.BacksolveAdjoint())


def test_rows_of_a_joint_batch():
    """Each row has a control of its own, which moves with it."""
    values = np.stack([VALUES, 2 * VALUES])

    def field(t, y, args):
        slopes = jax.vmap(lambda v: path("cubic", v).derivative(t))(args.value)
        return y * slopes

    controls = tn.PerRow(jnp.asarray(values))
    sol = solve(
        dfx.ODETerm(field), tn.Sampled(points=200, batch_axis=0), y0=[1.3, 1.3], args=controls
    )
    assert eqx.is_array(sol.stats["penalty"])
    alone = [
        solve(dfx.ControlTerm(growth, path("cubic", v)).to_ode(), tn.Augmented()).stats["penalty"]
        for v in values
    ]
    assert sol.stats["penalty"] == pytest.approx(np.mean(alone), rel=0.05)
