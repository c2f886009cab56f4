"""Advice on solvers, tolerances and orders, for equations with known solutions."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import taynode as tn
from taynode.advice.measure import name_of
from taynode.advice.order import best_order
from taynode.advice.problem import adaptive, InitialValues, solve_exactly
from taynode.advice.search import audit
from taynode.advice.stiffness import stiffness_of
from taynode.models import Solve


RTOL, ATOL = 1e-3, 1e-4
SOLVERS = (dfx.Heun(), dfx.Tsit5())


class Rotation(eqx.Module):
    """y' = (1 + |y|^2) J y: circles, whose speed depends on their radius."""

    rate: jax.Array

    def __call__(self, t, y, args):
        return self.rate * (1 + jnp.sum(y**2)) * jnp.stack([-y[1], y[0]])


FIELD = Rotation(jnp.array(2.0))
Y0S = jr.uniform(jr.key(0), (12, 2), minval=0.2, maxval=1.2)


def exactly(y0s):
    angle = FIELD.rate * (1 + jnp.sum(y0s**2, axis=1))
    turned = jnp.stack([-y0s[:, 1], y0s[:, 0]], axis=1)
    return jnp.cos(angle)[:, None] * y0s + jnp.sin(angle)[:, None] * turned


def true_error(y1s, y0s):
    exact = exactly(y0s)
    return float(jnp.sqrt(jnp.mean(((y1s - exact) / (ATOL + RTOL * jnp.abs(exact))) ** 2)))


@pytest.fixture(scope="module")
def advice():
    # Heun with steps of 1/10 is far off.
    grid = Solve(dfx.Heun(), num_steps=10)
    final = lambda y1s: jnp.mean(y1s**2)
    return tn.advise(
        FIELD, Y0S, 0.0, 1.0, rtol=RTOL, atol=ATOL, present=grid, loss=final, solvers=SOLVERS
    )


def test_errors_are_those_of_the_closed_form(advice):
    for course in advice.courses.values():
        for found in (course[0], course[-1]):
            y1s = jax.vmap(lambda y0, s=found.solve: s(FIELD, y0).ys[-1])(Y0S)
            # The exact solution is that of a thousandth of the tolerance.
            assert found.error == pytest.approx(true_error(y1s, Y0S), rel=0.01, abs=1e-3)


def test_the_recommended_setting_is_the_cheapest_accurate_one(advice):
    accurate = [m for course in advice.courses.values() for m in course if m.is_accurate]
    assert advice.best.is_accurate
    assert advice.best.nfe == min(m.nfe for m in accurate)
    assert advice.best.solver == "Tsit5"
    # A little less accurate is not accurate enough.
    course = advice.courses["Tsit5"]
    assert not course[course.index(advice.best) - 1].is_accurate


@pytest.mark.slow
def test_it_holds_on_other_inputs(advice):
    """On new samples it is within 10 % of the cheapest setting there, and about as accurate."""
    others = jr.uniform(jr.key(1), (24, 2), minval=0.2, maxval=1.2)
    there = tn.advise(FIELD, others, 0.0, 1.0, rtol=RTOL, atol=ATOL, solvers=SOLVERS[1:])
    sol = jax.vmap(lambda y0: advice.solve(FIELD, y0))(others)
    assert float(jnp.mean(sol.stats["nfe"])) < 1.1 * there.best.nfe
    assert true_error(sol.ys[:, -1], others) < 1.5


def test_a_grid_that_is_no_solution_is_audited(advice):
    found = advice.audit
    assert found.is_grid
    assert not found.present.is_accurate
    assert found.present.nfe == 2 * 10
    # The radius is kept by the exact solution alone.
    assert found.exact_loss == pytest.approx(float(jnp.mean(Y0S**2)), rel=1e-6)
    assert found.loss != pytest.approx(found.exact_loss, rel=1e-3)
    assert "does not solve its differential equation" in str(advice)


def test_it_reads_well(advice):
    text = str(advice)
    assert f"Use Tsit5 with rtol={advice.best.rtol:.2g}" in text
    assert "Stability does not limit the steps" in text
    assert f"penalize R_{advice.order}" in text


def test_it_is_drawn(advice, tmp_path):
    matplotlib.use("Agg")
    axes = advice.plot()
    assert [line.get_label() for line in axes.get_lines()[:2]] == ["Heun", "Tsit5"]
    axes.figure.savefig(tmp_path / "work-precision.png")


def van_der_pol(t, y, args):
    return jnp.stack([y[1], 200.0 * (1 - y[0] ** 2) * y[1] - y[0]])


@pytest.mark.slow
@pytest.mark.parametrize("rate", [5.0, 5000.0])
def test_stability_asks_for_steps(rate):
    """y' = rate (cos t - y): its Jacobian is -rate."""
    problem = InitialValues(lambda t, y, args: rate * (jnp.cos(t) - y), Y0S[:2], 0.0, 1.0, None)
    found = stiffness_of(problem, adaptive(dfx.Tsit5(), 1e-3, 1e-3, max_steps=4096))
    assert found.stable_steps == pytest.approx(rate / 3.3, rel=1e-6)
    assert found.is_stiff == (rate > 100)


@pytest.mark.slow
def test_a_stiff_equation_is_recognized_and_an_implicit_solver_is_better():
    y0s = jnp.array([[2.0, 0.0], [1.8, 0.0]])
    options = dict(rtol=1e-3, atol=1e-3, max_steps=2**14)
    found = tn.advise(van_der_pol, y0s, 0.0, 20.0, solvers=(dfx.Tsit5(), dfx.Kvaerno5()), **options)
    assert found.stiffness.is_stiff
    explicit, implicit = (found.courses[name][-1] for name in ("Tsit5", "Kvaerno5"))
    assert implicit.is_accurate
    assert explicit.nfe > 20 * implicit.nfe
    # SciPy finds the same final states.
    scipy = [
        solve_ivp(lambda t, y: np.asarray(van_der_pol(t, y, None)), (0, 20), y0, "Radau",
                  rtol=1e-8, atol=1e-8).y[:, -1]
        for y0 in np.asarray(y0s)
    ]  # fmt: skip
    y1s = jax.vmap(lambda y0: implicit.solve(van_der_pol, y0, t1=20.0).ys[-1])(y0s)
    np.testing.assert_allclose(y1s, scipy, rtol=5e-3, atol=5e-3)


def test_lower_orders_win_ties():
    assert best_order({2: 0.5, 3: 0.9, 4: 0.95, 5: 0.7}) == 3
    assert best_order({2: 0.5, 3: 0.6, 4: 0.9, 5: 0.7}) == 4
    assert best_order({2: -0.1, 3: 0.0, 4: 0.1, 5: 0.2}) == 3
    assert best_order({}) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y0s": jnp.array(1.0)}, "`y0s` must have samples along the first axis"),
        ({"y0s": (jnp.ones((2, 1)), jnp.ones((3, 1)))}, "`y0s` must have samples"),
        ({"rtol": 0.0}, "`rtol` must be positive, got 0.0"),
    ],
)
def test_what_is_wrong_is_named(changes, message):
    options = {"y0s": Y0S, "rtol": RTOL} | changes
    with pytest.raises(ValueError, match=message):
        tn.advise(FIELD, options["y0s"], 0.0, 1.0, rtol=options["rtol"])


@pytest.mark.parametrize(
    "present",
    [
        Solve(dfx.Heun(), num_steps=4, regularizer=tn.TotalDerivative(order=2)),
        Solve(dfx.Heun(), stepsize_controller=dfx.StepTo(jnp.linspace(0.0, 1.0, 5))),
        Solve(dfx.Heun(), max_steps=2),
    ],
    ids=["regularized", "steps of its own", "fails"],
)
def test_a_setting_of_training_is_audited(present):
    problem = InitialValues(FIELD, Y0S[:2], 0.0, 1.0, None)
    exact = solve_exactly(problem, RTOL, ATOL)
    found = audit(problem, exact, present, None).present
    assert not found.is_accurate
    assert found.solver == "Heun"


def test_solvers_are_told_apart_by_what_they_wrap():
    names = [name_of(dfx.HalfSolver(solver)) for solver in (dfx.Euler(), dfx.Heun())]
    assert names == ["HalfSolver(Euler)", "HalfSolver(Heun)"]
    with pytest.raises(ValueError, match="Heun twice"):
        tn.advise(FIELD, Y0S[:2], 0.0, 1.0, solvers=(dfx.Heun(), dfx.Heun()))


def test_a_single_initial_state_and_a_term_say_what_to_pass():
    # JAX speaks of a matrix product, and Python of an `ODETerm` that is not callable.
    weights = np.ones((2, 2))
    with pytest.raises((TypeError, ValueError)) as caught:
        tn.advise(lambda t, y, args: weights @ y, np.ones(2), 0.0, 1.0)
    assert any("pass `y0[None]`" in note for note in caught.value.__notes__)
    with pytest.raises(TypeError, match=r"must be a function `f\(t, y, args\)`, got `ODETerm`"):
        tn.advise(dfx.ODETerm(FIELD), Y0S[:2], 0.0, 1.0)
