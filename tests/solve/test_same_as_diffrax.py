"""The solve is diffrax's: the same steps and values, whatever is penalized on the way."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn
from tests.integration.problems import counts, distance, KEY, Network, network, pendulum, pid, Y0


SPEED = tn.TotalDerivative(order=2)
QUADRATURES = {
    "none": {},
    "augmented": dict(regularizer=SPEED, quadrature=tn.Augmented()),
    "sampled": dict(regularizer=SPEED, quadrature=tn.Sampled(points=2), key=KEY),
    "backward": dict(regularizer=SPEED, quadrature=tn.Backward()),
}


def nested(tol=1e-4, dtype=jnp.float64):
    """Steps to given times, and jumps, around a controller with a memory."""
    memory = pid(tol, pcoeff=0.3, icoeff=0.4)
    inner = dfx.ClipStepSizeController(memory, step_ts=jnp.array([0.31, 1.7], dtype))
    return dfx.ClipStepSizeController(inner, jump_ts=jnp.array([0.9], dtype))


def run(lib, solver, controller, span, dt0, *, y0=Y0, dtype=jnp.float64, **options):
    t0, t1 = (jnp.array(t, dtype) for t in span)
    if dt0 is not None:
        dt0 = jnp.where(t0 < t1, jnp.array(dt0, dtype), jnp.array(-dt0, dtype))
    return lib.diffeqsolve(
        dfx.ODETerm(pendulum),
        solver,
        t0,
        t1,
        dt0,
        y0.astype(dtype),
        stepsize_controller=controller,
        **options,
    )


FORWARD, BACK = (0.0, 2.0), (2.0, 0.0)
# Solver, controller, first step, quadratures. The first step is far too large, so that some are
# rejected. Implicit solvers need derivatives in forward mode, which `Backward` does not have.
ALL = list(QUADRATURES)
CASES = {
    "same-as-last, nested control": (dfx.Dopri5(), nested(), 2.0, ["augmented", "backward"]),
    "constant steps": (dfx.Bosh3(), dfx.ConstantStepSize(), 0.15, ["sampled"]),
}
REVISIT = dfx.ClipStepSizeController(pid(1e-5), store_rejected_steps=20)
# `test_gradient_product.py` has steps to given times, against closed forms.
GIVEN_TIMES = dfx.StepTo(jnp.array([0.0, 0.2, 0.9, 2.0]))
MORE_CASES = {
    "given times": (dfx.Tsit5(), GIVEN_TIMES, None, ["augmented"]),
    "same-as-last, nested control, all": (dfx.Dopri5(), nested(), 2.0, ALL),
    "not same-as-last, memory": (dfx.Heun(), pid(pcoeff=0.4, icoeff=0.3), 2.0, ALL),
    "implicit, all": (dfx.Kvaerno3(), pid(), 2.0, ALL[:3]),
    "constant steps, all": (dfx.Bosh3(), dfx.ConstantStepSize(), 0.15, ALL),
    "wrapped": (dfx.HalfSolver(dfx.Bosh3()), nested(), 2.0, ALL),
    "wrapped Euler": (dfx.HalfSolver(dfx.Euler()), pid(1e-2), 2.0, ALL),
    "reversible": (dfx.ReversibleHeun(), nested(1e-3), 2.0, ALL),
    "leapfrog": (dfx.LeapfrogMidpoint(), dfx.ConstantStepSize(), 0.1, ALL),
    "Dopri8": (dfx.Dopri8(), pid(1e-8), 0.01, ALL),
    "Kvaerno5": (dfx.Kvaerno5(), nested(), 2.0, ALL[:3]),
    "Tanaka-Yamashita": (tn.solvers.TanakaYamashita7(), nested(1e-8), 2.0, ALL),
    "Cash-Karp": (tn.solvers.CashKarp(), pid(1e-6), 2.0, ALL),
    "limits of the step": (dfx.Tsit5(), pid(1e-6, dtmin=0.05, dtmax=0.1), 2.0, ALL),
    "rejected steps revisited": (dfx.Tsit5(), REVISIT, 2.0, ALL),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_and_values_are_those_of_diffrax(case):
    check_steps_and_values(*CASES[case], [FORWARD, BACK])


@pytest.mark.slow
@pytest.mark.parametrize("case", MORE_CASES)
def test_more_steps_and_values_are_those_of_diffrax(case):
    spans = [FORWARD] if case == "given times" else [FORWARD, BACK]
    check_steps_and_values(*MORE_CASES[case], spans)


def check_steps_and_values(solver, controller, dt0, quadratures, spans):
    for span in spans:
        ts = jnp.array([0.5, 1.3] if span == FORWARD else [1.3, 0.5])
        saveat = dfx.SaveAt(ts=ts, t1=True)
        plain = run(dfx, solver, controller, span, dt0, saveat=saveat)
        for quadrature in quadratures:
            options = QUADRATURES[quadrature]
            sol = run(tn, solver, controller, span, dt0, saveat=saveat, **options)
            assert counts(sol) == counts(plain)
            assert distance((sol.ts, sol.ys), (plain.ts, plain.ys)) < 1e-12


@pytest.mark.slow
def test_steps_and_values_of_single_precision_are_those_of_diffrax():
    single = jnp.float32
    case = (dfx.Dopri5(), nested(1e-3, single), FORWARD, 2.0)
    plain = run(dfx, *case, dtype=single)
    sol = run(tn, *case, dtype=single, **QUADRATURES["augmented"])
    assert counts(sol) == counts(plain)
    assert sol.ys.dtype == sol.ts.dtype == sol.stats["penalty"].dtype == single
    # Compiled together with other things, sums may be rounded otherwise.
    assert distance((sol.ts, sol.ys), (plain.ts, plain.ys)) < 1e-6


STARTS = jnp.array([[1.2, 0.0], [0.1, 0.0], [-2.0, 3.0]])


@pytest.mark.slow
def test_steps_and_values_under_vmap_are_those_of_diffrax():
    def solve(lib, **options):
        alone = lambda y0: run(lib, dfx.Tsit5(), nested(), FORWARD, 2.0, y0=y0, **options)
        sol = jax.vmap(alone)(STARTS)
        return counts(sol), sol.ys

    steps, ys = solve(dfx)
    assert len({tuple(c) for c in zip(*steps, strict=True)}) == 3
    other_steps, other_ys = solve(tn, **QUADRATURES["augmented"])
    assert other_steps == steps
    assert distance(other_ys, ys) < 1e-12


@pytest.mark.slow
def test_steps_and_values_of_a_joint_batch_are_those_of_diffrax():
    """With times of each row's own, for which the solver is wrapped."""
    batch = {"a": STARTS, "b": (STARTS[:, :1],)}

    def field(t, y, args):
        a, (b,) = y["a"], y["b"]
        return {"a": jnp.sin(a[:, ::-1]) * b, "b": (jnp.cos(a[:, :1] + t),)}

    def solve(lib, **options):
        term, controller = dfx.ODETerm(field), nested()
        return lib.diffeqsolve(
            term, dfx.Dopri5(), 0.0, 2.0, 2.0, batch, stepsize_controller=controller, **options
        )

    plain = solve(dfx)
    rows = dict(regularizer=SPEED, quadrature=tn.Sampled(points=2, batch_axis=0), key=KEY)
    sol = solve(tn, **rows)
    assert counts(sol) == counts(plain)
    assert distance((sol.ts, sol.ys), (plain.ts, plain.ys)) < 1e-12


def test_solve_that_begins_right_before_a_jump_is_that_of_diffrax():
    # BUG, fixed: its first step has length zero, which is not the end of it.
    controller = dfx.ClipStepSizeController(pid(), jump_ts=jnp.array([0.5]))
    span = (np.nextafter(0.5, 0.0), 1.0)
    plain = run(dfx, dfx.Tsit5(), controller, span, 0.1)
    sol = run(tn, dfx.Tsit5(), controller, span, 0.1)
    assert counts(sol) == counts(plain)
    assert distance(sol.ys, plain.ys) < 1e-12


# Gradients.


def loss(lib, controller, parameters, *, span=(0.0, 1.0), saveat=None, **options):
    """A sum over outputs. Whatever is penalized has no weight."""
    field, y0, args = parameters
    t0, t1 = span
    sol = lib.diffeqsolve(
        dfx.ODETerm(field),
        dfx.Tsit5(),
        t0,
        t1,
        jnp.where(t0 < t1, 0.05, -0.05),
        y0,
        args,
        stepsize_controller=controller,
        saveat=dfx.SaveAt(t1=True) if saveat is None else saveat,
        **options,
    )
    total = jnp.sum(jnp.sin(sol.ys))
    return total + 0.0 * sol.stats["penalty"] if "penalty" in sol.stats else total


def gradient(lib, controller, *, field=None, **options):
    parameters = (network() if field is None else field), Y0, jnp.array(0.7)
    return eqx.filter_grad(lambda p: loss(lib, controller, p, **options))(parameters)


# `test_gradient_product.py` holds them to closed forms.
@pytest.mark.slow
@pytest.mark.parametrize("adjoint", [dfx.RecursiveCheckpointAdjoint(), dfx.DirectAdjoint()])
def test_gradients_without_regularizer_are_those_of_diffrax(adjoint):
    """Also with respect to the times."""

    def derivative(lib):
        def value(parameters):
            *parameters, span = parameters
            return loss(lib, pid(1e-3), parameters, span=span, adjoint=adjoint, max_steps=32)

        return eqx.filter_grad(value)((network(), Y0, jnp.array(0.7), jnp.array([0.0, 1.0])))

    assert distance(derivative(tn), derivative(dfx)) < 1e-12


@pytest.mark.slow
def test_forward_mode_without_regularizer_is_that_of_diffrax():
    def derivative(lib):
        def value(s):
            parameters = network(), s * Y0, s * jnp.array(0.7)
            return loss(lib, nested(), parameters, adjoint=dfx.ForwardMode())

        return jax.jvp(value, (1.0,), (1.0,))

    assert distance(derivative(tn), derivative(dfx)) < 1e-12


@pytest.mark.slow
def test_implicit_adjoint_without_regularizer_is_that_of_diffrax():
    # BUG, fixed: the output of the controller's state was always asked for, which this adjoint
    # refuses; and so it would the slope that was handed on, since that has a gradient.
    def derivative(lib):
        def value(args):
            steady = dfx.steady_state_event(rtol=1e-3, atol=1e-3)
            sol = lib.diffeqsolve(
                dfx.ODETerm(lambda t, y, args: args - y),
                dfx.Tsit5(),
                0.0,
                100.0,
                0.5,
                Y0,
                args,
                stepsize_controller=pid(1e-3),
                event=dfx.Event(steady),
                adjoint=dfx.ImplicitAdjoint(),
            )
            return jnp.sum(sol.ys**2)

        # diffrax's rule for this gradient mixes types.
        with jax.numpy_dtype_promotion("standard"):
            return jax.value_and_grad(value)(jnp.array([3.0, 4.0]))

    assert distance(derivative(tn), derivative(dfx)) < 1e-12


# If the penalty has no weight then gradients are those without it, to the last digits, as long as
# the backward solve takes the same steps.


def check_backward_steps(quadratures, *, tol=1e-12, **options):
    options = dict(dict(controller=pid(1e-3), adjoint=dfx.BacksolveAdjoint()), **options)
    plain = gradient(dfx, **options)
    for quadrature in quadratures:
        other = gradient(tn, **options, **QUADRATURES[quadrature])
        assert distance(other, plain) < tol


class WithSpare(Network):
    """A network with parameters that it does not use."""

    spare: jax.Array


@pytest.mark.slow
def test_backward_solve_takes_the_steps_of_the_plain_adjoint():
    # BUG, fixed: the backward solve was given the controller as it was before diffrax turned its
    # times around for a solve from 1 to 0, so it stepped to -0.31 and -0.77.
    # BUG, fixed: `Backward` converted the vector field to one of the parameters that it uses, while
    # the norm of the plain adjoint is a mean over all of them.
    used = network()
    field = WithSpare(used.weight, used.bias, jnp.ones(1000))
    steps = dfx.ClipStepSizeController(pid(1e-3), step_ts=jnp.array([0.31, 0.77]))
    options = dict(controller=steps, field=field, span=(1.0, 0.0))
    check_backward_steps(["backward"], **options)


@pytest.mark.slow
def test_backward_solve_with_a_seminorm_takes_the_steps_of_the_plain_adjoint():
    seminorm = pid(1e-3, norm=dfx.adjoint_rms_seminorm)
    adjoint = dfx.BacksolveAdjoint(stepsize_controller=seminorm, solver=dfx.Dopri5())
    check_backward_steps(["augmented"], adjoint=adjoint)


MEMORY = pid(1e-3, pcoeff=0.3, icoeff=0.4)


@pytest.mark.slow
def test_backward_solve_through_several_outputs_takes_the_steps_of_the_plain_adjoint():
    saveat = dfx.SaveAt(t0=True, ts=jnp.array([0.3, 0.6]), t1=True)
    quadratures = ["none", "augmented", "backward"]
    # Rounding adds up over the segments.
    check_backward_steps(quadratures, controller=MEMORY, saveat=saveat, tol=1e-10)


@pytest.mark.slow
def test_backward_solve_from_an_output_before_the_end_takes_the_steps_of_the_plain_adjoint():
    # The penalty reaches to the end, which is one more segment of the backward solve. Control that
    # remembers earlier errors takes them along from there, which no plain adjoint has; the other
    # takes its steps as if nothing had been before.
    saveat = dfx.SaveAt(ts=jnp.array([0.6]))
    check_backward_steps(["augmented"], saveat=saveat)


START = jnp.array(1.0), jnp.array(0.5)


@pytest.mark.parametrize(
    "adjoint",
    [dfx.DirectAdjoint(), pytest.param(dfx.BacksolveAdjoint(), marks=pytest.mark.slow)],
)
def test_gradient_of_a_sample_does_not_depend_on_the_others(adjoint):
    # BUG, fixed: the penalty of `Backward` was a zero that need not belong to a sample, for all
    # that `jax.vmap` can see, and then its cotangents were summed over the batch: the gradient was
    # that of the sample times the size of the batch. Here the batch is one of arguments; the
    # initial state, the slope of its first leaf, and all of that leaf are the same for all.
    def field(t, y, args):
        first, second = y
        return -first, args * jnp.sin(first + second)

    def penalty(args):
        sol = tn.diffeqsolve(
            dfx.ODETerm(field),
            dfx.Euler(),
            0.0,
            0.5,
            0.25,
            START,
            args,
            max_steps=2,
            regularizer=tn.KineticEnergy(),
            quadrature=tn.Backward(),
            adjoint=adjoint,
        )
        return sol.stats["penalty"]

    def by_hand(args):
        y, total = START, 0.0
        for _ in range(2):
            slope = field(0.0, y, args)
            total += 0.25 * (slope[0] ** 2 + slope[1] ** 2) / 2
            y = y[0] + 0.25 * slope[0], y[1] + 0.25 * slope[1]
        return total

    samples = jnp.array([1.0, 0.5, 2.0])
    # The other adjoint makes steps of its own on the way back.
    is_exact = isinstance(adjoint, dfx.DirectAdjoint)
    gradient = jax.jit(jax.grad(by_hand if is_exact else penalty))
    alone = jnp.stack([gradient(sample) for sample in samples])
    together = lambda args: jnp.sum(jax.vmap(penalty)(args))
    np.testing.assert_allclose(jax.grad(together)(samples), alone, rtol=1e-9)


def test_gradient_of_the_penalty_with_respect_to_the_end_is_its_rate():
    # BUG, fixed: `Backward` has no value to differentiate for the length of a step, and said
    # nothing.
    def penalty(t1, quadrature):
        sol = tn.diffeqsolve(
            dfx.ODETerm(pendulum),
            dfx.Euler(),
            0.0,
            t1,
            jnp.array(0.25),
            Y0,
            max_steps=1,
            regularizer=tn.KineticEnergy(),
            quadrature=quadrature,
            adjoint=dfx.DirectAdjoint(),
        )
        return sol.stats["penalty"]

    t1 = jnp.array(0.2)
    expected = jax.grad(penalty)(t1, tn.Augmented())
    try:
        found = jax.grad(penalty)(t1, tn.Backward())
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        return  # to refuse it is fine, too
    np.testing.assert_allclose(found, expected, rtol=1e-9)
