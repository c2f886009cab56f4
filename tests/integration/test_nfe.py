"""The number of function evaluations, against counters inside the vector field."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn

from .problems import Counted, KEY, pid, Tally, Y0


TALLY, RATES = Tally(), Tally()
NOWHERE = 1e3

ADAPTIVE = [
    dfx.Heun(),
    dfx.Dopri5(),
    dfx.ReversibleHeun(),
    dfx.HalfSolver(dfx.Bosh3()),
    tn.solvers.Fehlberg12(),
]
# They differ from some of those above in their coefficients alone.
SIMILAR = [
    dfx.HalfSolver(dfx.Euler()),
    tn.solvers.RK4(),
    tn.solvers.OwrenZennaro5(),
    dfx.Bosh3(),
    dfx.Tsit5(),
    dfx.Dopri8(),
    tn.solvers.CashKarp(),
    tn.solvers.OwrenZennaro4(),
    tn.solvers.TanakaYamashita7(),
    dfx.Midpoint(),
    dfx.Ralston(),
    dfx.HalfSolver(dfx.Heun()),
    dfx.HalfSolver(dfx.ReversibleHeun()),
    tn.solvers.RKFehlberg45(),
]
# With and without a last slope that is used again, in whole and in half steps. For what does not
# depend on coefficients. The last one has the most stages.
OF_EACH_KIND = [*ADAPTIVE, dfx.HalfSolver(dfx.Heun()), dfx.Dopri8()]
# Without an estimate of the error.
SIMPLE = [dfx.Euler(), dfx.LeapfrogMidpoint()]


def name(solver):
    inner = f"({name(solver.solver)})" if isinstance(solver, dfx.HalfSolver) else ""
    return type(solver).__name__ + inner


def field(t, y, args):
    """An oscillation that becomes `args["rate"]` times faster behind `args["jump"]`."""
    TALLY.note(t)
    rate = jnp.where(t > args["jump"], args["rate"], 1.0)
    return rate * jnp.stack([y[1], -jnp.sin(y[0])])


def choose(term, t0, t1, y0, args, **options):
    """The usual first step, or that of the arguments if they have one."""
    usual = tn.initial_step_size(term, t0, t1, y0, args, **options)
    return jnp.where(args["step"] > 0, jnp.sign(usual) * args["step"], usual)


def scenario(*, jump=NOWHERE, rate=1.0, step=0.0):
    return {name: jnp.array(x) for name, x in dict(jump=jump, rate=rate, step=step).items()}


def controller(args):
    return dfx.ClipStepSizeController(pid(1e-3), jump_ts=args["jump"][None])


def solve(solver, args, dt0=choose, *, vf=field, t0=0.0, t1=2.0, y0=Y0, **options):
    """One solve, and the times at which the vector field was evaluated."""
    options.setdefault("stepsize_controller", controller(args))
    t0, t1 = jnp.array(t0), jnp.array(t1)
    TALLY.take()
    sol = tn.diffeqsolve(dfx.ODETerm(vf), solver, t0, t1, dt0, y0, args, **options)
    return sol, TALLY.take()


def assert_counted(sol, times):
    assert int(sol.stats["nfe"]) == len(times)
    assert sol.stats["nfe_exact"] is True


def evaluations_at_start(solver):
    """By an attempt, if it cannot use a slope from before."""
    return 2 if isinstance(solver, dfx.HalfSolver) else 1


@pytest.mark.parametrize("solver", [*ADAPTIVE, *SIMILAR], ids=name)
def test_nfe_of_adaptive_solves_is_that_of_a_counter(solver):
    """One program; where the field jumps, how fast it is, and the first step are arguments."""
    usual, times = solve(solver, scenario())
    assert_counted(usual, times)
    assert usual.stats["num_steps"] > 1

    # A single step would do if the first attempt were accepted.
    sol, times = solve(solver, scenario(rate=8.0, jump=-1.0, step=2.0))
    assert_counted(sol, times)
    assert sol.stats["num_rejected_steps"] > 0

    calm, times = solve(solver, scenario(jump=1.0))
    assert_counted(calm, times)
    restart = np.nextafter(1.0, np.inf)
    assert restart in times

    sharp, times = solve(solver, scenario(jump=1.0, rate=40.0))
    assert_counted(sharp, times)
    # At least one attempt right behind the jump was rejected.
    assert times.count(restart) >= 2 * evaluations_at_start(solver)

    # Backward in time the jump is first fast, then slow.
    back, times = solve(solver, scenario(jump=1.0, rate=10.0), t0=2.0, t1=0.0)
    assert_counted(back, times)
    assert np.nextafter(1.0, -np.inf) in times

    nothing, times = solve(solver, scenario(), t1=0.0)
    assert_counted(nothing, times)
    assert nothing.stats["nfe"] == 2


@pytest.mark.parametrize("solver", [dfx.HalfSolver(dfx.Bosh3())], ids=name)
def test_nfe_with_a_given_first_step_is_that_of_a_counter(solver):
    check_given_first_step(solver)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [*ADAPTIVE, *SIMILAR], ids=name)
def test_nfe_of_all_solvers_with_a_given_first_step_is_that_of_a_counter(solver):
    check_given_first_step(solver)


def check_given_first_step(solver):
    arguments = [
        (scenario(), 0.1),
        (scenario(rate=8.0, jump=-1.0), 2.0),
        (scenario(jump=1.0, rate=40.0), 0.1),
    ]
    for args, dt0 in arguments:
        sol, times = solve(solver, args, jnp.array(dt0))
        assert_counted(sol, times)


@pytest.mark.parametrize("solver", [*SIMPLE, dfx.Dopri5()], ids=name)
def test_nfe_of_constant_steps_is_that_of_a_counter(solver):
    check_constant_steps(solver)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [*SIMPLE, *ADAPTIVE, *SIMILAR], ids=name)
def test_nfe_of_constant_steps_of_all_solvers_is_that_of_a_counter(solver):
    check_constant_steps(solver)


def check_constant_steps(solver):
    for t1 in (2.0, 0.3, 0.0):
        sol, times = solve(
            solver, scenario(), jnp.array(0.3), t1=t1, stepsize_controller=dfx.ConstantStepSize()
        )
        assert_counted(sol, times)


@pytest.mark.parametrize("solver", [dfx.Euler(), dfx.Dopri5()], ids=name)
def test_nfe_of_steps_to_given_times_is_that_of_a_counter(solver):
    check_given_times(solver)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [*ADAPTIVE, *SIMILAR], ids=name)
def test_nfe_of_steps_of_all_solvers_to_given_times_is_that_of_a_counter(solver):
    check_given_times(solver)


def check_given_times(solver):
    steps = dfx.StepTo(jnp.array([0.0, 0.1, 0.7, 2.0]))
    sol, times = solve(solver, scenario(), None, stepsize_controller=steps)
    assert_counted(sol, times)
    assert sol.stats["num_steps"] == 3


def test_nfe_of_two_terms_counts_evaluations_of_each():
    first, second = Tally(), Tally()

    def position(t, v, args):
        first.note(t)
        return v

    def velocity(t, x, args):
        second.note(t)
        return -jnp.sin(x)

    terms = dfx.ODETerm(position), dfx.ODETerm(velocity)
    y0 = jnp.array(1.0), jnp.array(0.0)
    sol = tn.diffeqsolve(terms, dfx.SemiImplicitEuler(), 0.0, 1.0, 0.1, y0)
    assert len(first.take()) == len(second.take()) == sol.stats["nfe"] == 10
    assert sol.stats["nfe_exact"] is True


def test_nfe_of_a_controlled_equation_is_that_of_a_counter():
    check_controlled(dfx.Tsit5())


@pytest.mark.slow
@pytest.mark.parametrize("solver", OF_EACH_KIND, ids=name)
def test_nfe_of_each_kind_of_solver_of_a_controlled_equation_is_that_of_a_counter(solver):
    check_controlled(solver)


def check_controlled(solver):
    """With steps that end at knots, where the derivative of the control jumps."""
    knots = jnp.array([0.0, 0.3, 0.4, 1.1, 2.0])
    control = dfx.LinearInterpolation(knots, jnp.array([0.0, 1.0, -1.0, 4.0, 3.0]))
    term = dfx.ControlTerm(field, control)
    known = dfx.ClipStepSizeController(pid(1e-3), jump_ts=knots[1:-1])
    options = dict(regularizer=tn.KineticEnergy(), quadrature=tn.Augmented())
    for each in (term, term.to_ode()):
        TALLY.take()
        sol = tn.diffeqsolve(
            each, solver, 0.0, 2.0, 0.5, Y0, scenario(), stepsize_controller=known, **options
        )
        rates = int(sol.stats["penalty_evaluations"]) if each is term else 0
        # As an ordinary equation, the solver's evaluations are those of the penalty.
        assert len(TALLY.take()) == sol.stats["nfe"] + rates
        assert sol.stats["nfe_exact"] is True
    sol = tn.diffeqsolve(term, solver, 0.0, 2.0, 0.5, Y0, scenario(), stepsize_controller=known)
    assert_counted(sol, TALLY.take())


def test_dopri5_makes_two_evaluations_and_six_a_step():
    sol, times = solve(dfx.Dopri5(), scenario(), None, stepsize_controller=pid(1e-6))
    assert sol.stats["nfe"] == len(times) == 2 + 6 * sol.stats["num_steps"]


def test_nfe_of_a_solve_that_ends_early_is_that_of_a_counter():
    event = dfx.Event(lambda t, y, args, **kwargs: y[0] < 0.5)
    sol, times = solve(dfx.Tsit5(), scenario(), event=event)
    assert sol.result == dfx.RESULTS.event_occurred
    assert_counted(sol, times)


@pytest.mark.parametrize("solver", [dfx.Dopri5()], ids=name)
def test_nfe_under_vmap_is_that_of_each_sample_alone(solver):
    """Also if some samples cross a jump, and others do not."""
    check_vmap(solver)


@pytest.mark.slow
@pytest.mark.parametrize("solver", OF_EACH_KIND, ids=name)
def test_nfe_of_each_kind_of_solver_under_vmap_is_that_of_each_sample_alone(solver):
    check_vmap(solver)


def check_vmap(solver):
    samples = [
        scenario(),
        scenario(jump=1.0, rate=40.0),
        scenario(jump=0.5, rate=3.0, step=2.0),
        scenario(rate=8.0, jump=-1.0, step=2.0),
    ]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *samples)
    starts = jnp.array([[1.2, 0.0], [0.3, 0.1], [0.0, 2.0], [1.2, 0.0]])

    def run(args, y0):
        term = dfx.ODETerm(field)
        return tn.diffeqsolve(
            term, solver, 0.0, 2.0, choose, y0, args, stepsize_controller=controller(args)
        ).stats

    stats = jax.vmap(run)(batch, starts)
    for i, args in enumerate(samples):
        sol, times = solve(solver, args, y0=starts[i])
        assert_counted(sol, times)
        assert stats["nfe"][i] == sol.stats["nfe"]
        assert stats["num_steps"][i] == sol.stats["num_steps"]
    assert len(set(stats["nfe"].tolist())) == len(samples)


@pytest.mark.parametrize(
    ("solver", "dt0"),
    [
        pytest.param(dfx.Dopri5(), None, id="Dopri5"),
        pytest.param(dfx.Heun(), None, id="Heun"),
        pytest.param(dfx.Dopri5(), jnp.array(0.1), id="given", marks=pytest.mark.slow),
    ],
)
def test_penalty_evaluations_of_augmented_are_those_of_a_counter(solver, dt0):
    """The solver's evaluations are of both; those which choose a step are of the plain system."""
    RATES.take()
    for args in (scenario(), scenario(jump=1.0, rate=40.0)):
        sol, times = solve(solver, args, dt0, regularizer=Counted(RATES), quadrature=tn.Augmented())
        assert_counted(sol, times)
        rates = RATES.take()
        assert int(sol.stats["penalty_evaluations"]) == len(rates)
        probes = 0 if dt0 is not None else 1 if solver.tableau.fsal else 2
        assert len(rates) == len(times) - probes


def rows(t, y, args):
    """Rows that do not know of each other."""
    rate = jnp.where(t > args["jump"], args["rate"], 1.0)
    return rate * jnp.stack([y[..., 1], -jnp.sin(y[..., 0])], axis=-1)


def test_nfe_does_not_depend_on_the_quadrature():
    args = scenario(jump=1.0, rate=40.0)
    problem = dict(vf=rows, y0=jnp.array([[1.2, 0.0], [0.3, 0.1], [0.0, 2.0]]))
    plain, _ = solve(dfx.Dopri5(), args, **problem)
    assert plain.stats["num_rejected_steps"] > 0
    quadratures = [
        (tn.Sampled(points=2, batch_axis=0), 2),
        (tn.Backward(), 0),
    ]
    for quadrature, evaluations in quadratures:
        regularized = dict(regularizer=tn.KineticEnergy(), quadrature=quadrature, key=KEY)
        sol, _ = solve(dfx.Dopri5(), args, **problem, **regularized)
        for stat in ("nfe", "nfe_exact", "num_steps", "num_accepted_steps", "num_rejected_steps"):
            assert sol.stats[stat] == plain.stats[stat]
        assert sol.stats["penalty_evaluations"] == evaluations
        assert sol.stats["penalty_known"] is not isinstance(quadrature, tn.Backward)


def decay(t, y, args):
    return -y


ONE, TWO = dfx.ODETerm(decay), dfx.MultiTerm(dfx.ODETerm(decay), dfx.ODETerm(decay))


@pytest.mark.parametrize(
    ("solver", "terms", "stages"),
    [
        pytest.param(dfx.Kvaerno3(), ONE, 4, id="Kvaerno3"),
        pytest.param(dfx.Kvaerno5(), ONE, 7, id="Kvaerno5", marks=pytest.mark.slow),
        pytest.param(dfx.ImplicitEuler(), ONE, 1, id="ImplicitEuler", marks=pytest.mark.slow),
        pytest.param(dfx.KenCarp3(), TWO, 4, id="KenCarp3", marks=pytest.mark.slow),
    ],
)
def test_nfe_of_implicit_solvers_counts_stages_and_says_so(solver, terms, stages):
    y0 = jnp.array([1.0, 2.0])
    sol = tn.diffeqsolve(terms, solver, 0.0, 1.0, 0.1, y0, stepsize_controller=pid())
    assert sol.stats["nfe_exact"] is False
    assert sol.stats["nfe"] == stages * sol.stats["num_steps"]
