"""What is saved, and events: they see the state alone, whatever the quadrature adds to it."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import taynode as tn
from tests.integration.problems import counts, distance, KEY, pendulum, pid, TSIT5, Y0


SPEED = tn.TotalDerivative(order=2)
QUADRATURES = {
    "augmented": dict(regularizer=SPEED, quadrature=tn.Augmented()),
    "sampled": dict(regularizer=SPEED, quadrature=tn.Sampled(points=2), key=KEY),
    "backward": dict(regularizer=SPEED, quadrature=tn.Backward()),
}
each_quadrature = pytest.mark.parametrize("quadrature", ["none", *QUADRATURES])
TIMES = jnp.array([0.0, 0.3, 1.1])


def options_of(quadrature):
    return QUADRATURES.get(quadrature, {})


def solve(lib, *, dt0=0.1, y0=Y0, solver=TSIT5, span=(0.0, 2.0), **options):
    options.setdefault("stepsize_controller", pid(1e-3))
    options.setdefault("max_steps", 32)
    t0, t1 = span
    return lib.diffeqsolve(dfx.ODETerm(pendulum), solver, t0, t1, dt0, y0, **options)


def angle(t, y, args):
    assert y.shape == (2,)
    return {"angle": y[0], "time": t}


EVERYTHING = dfx.SaveAt(
    subs={
        "t0": dfx.SubSaveAt(t0=True),
        "ts": dfx.SubSaveAt(ts=TIMES, t1=True),
        "steps": (dfx.SubSaveAt(steps=True), dfx.SubSaveAt(steps=2, t1=True)),
        "fn": dfx.SubSaveAt(t0=True, ts=TIMES, t1=True, fn=angle),
    },
    dense=True,
    solver_state=True,
    controller_state=True,
    made_jump=True,
)


@pytest.mark.slow
@pytest.mark.parametrize("quadrature", ["augmented", "sampled", "backward"])
def test_everything_saved_at_once_is_as_in_diffrax(quadrature):
    plain = solve(dfx, saveat=EVERYTHING)
    sol = solve(tn, saveat=EVERYTHING, **options_of(quadrature))
    assert type(sol) is dfx.Solution
    assert (sol.t0, sol.t1) == (plain.t0, plain.t1)
    assert sol.result == plain.result
    assert set(plain.stats) < set(sol.stats)
    assert counts(sol) == counts(plain)
    assert distance((sol.ts, sol.ys), (plain.ts, plain.ys)) < 1e-12
    assert distance(sol.made_jump, plain.made_jump) == 0
    assert distance(sol.solver_state, plain.solver_state) < 1e-11
    # The memory of the control divides by error estimates, which are small.
    assert distance(sol.controller_state, plain.controller_state) < 1e-6
    times = jnp.linspace(0.0, 2.0, 5)
    for evaluate, other in [(sol.evaluate, plain.evaluate), (sol.derivative, plain.derivative)]:
        values = jax.vmap(evaluate)(times)
        assert values.shape == (5, 2)
        assert distance(values, jax.vmap(other)(times)) < 1e-11


def test_saving_only_dense_output():
    sol = solve(tn, saveat=dfx.SaveAt(dense=True), **options_of("augmented"))
    assert sol.ts is None
    assert sol.ys is None
    assert distance(sol.evaluate(0.0), Y0) == 0
    assert sol.evaluate(2.0).shape == (2,)
    assert sol.stats["penalty"] > 0


@pytest.mark.parametrize(
    "quadrature",
    [pytest.param(name, marks=pytest.mark.slow) for name in ("none", "augmented")] + ["sampled"],
)
def test_going_on_from_a_state(quadrature):
    """Half a solve with any quadrature, the rest with none; and the rest with another."""
    saveat = dfx.SaveAt(t1=True, solver_state=True, controller_state=True, made_jump=True)
    controller = dfx.ClipStepSizeController(
        pid(1e-3, pcoeff=0.3, icoeff=0.4), jump_ts=jnp.array([1.0])
    )
    both = dict(saveat=saveat, stepsize_controller=controller)

    def go_on(lib, first, **options):
        return solve(
            lib,
            span=(1.0, 2.0),
            y0=first.ys[0],
            solver_state=first.solver_state,
            controller_state=first.controller_state,
            made_jump=first.made_jump,
            **both,
            **options,
        )

    plain = solve(dfx, span=(0.0, 1.0), **both)
    rest = go_on(dfx, plain)
    first = solve(tn, span=(0.0, 1.0), **both, **options_of(quadrature))
    sol = go_on(tn, first)
    assert counts(sol) == counts(rest)
    assert distance(sol.ys, rest.ys) < 1e-12
    # A state is handed on, so the first slope is not evaluated again, unless there was a jump.
    assert sol.stats["nfe"] == 6 * sol.stats["num_steps"] + int(first.made_jump)
    if quadrature == "augmented":
        for refused in ("augmented", "backward"):
            message = "`solver_state` must be `None` with `quadrature=(Augmented|Backward)"
            with pytest.raises(ValueError, match=message):
                go_on(tn, first, **options_of(refused))
    else:
        sampled = go_on(tn, first, **options_of("sampled"))
        assert counts(sampled) == counts(rest)
        assert distance(sampled.ys, rest.ys) < 1e-12


@pytest.mark.slow
def test_rows_of_their_own_save_as_in_diffrax():
    """The quadrature that wraps the solver hands its state on, too."""

    def field(t, y, args):
        return jnp.sin(y[:, ::-1] + t)

    def run(lib, **options):
        return lib.diffeqsolve(
            dfx.ODETerm(field),
            dfx.Dopri5(),
            2.0,
            0.0,
            -0.1,
            jnp.array([[1.2, 0.0], [0.1, 3.0]]),
            stepsize_controller=pid(1e-3),
            max_steps=32,
            saveat=dfx.SaveAt(t0=True, steps=True, dense=True, solver_state=True),
            **options,
        )

    plain = run(dfx)
    rows = tn.Sampled(points=2, batch_axis=0)
    sol = run(tn, regularizer=SPEED, quadrature=rows, key=KEY)
    assert distance((sol.ts, sol.ys), (plain.ts, plain.ys)) < 1e-12
    assert distance(sol.solver_state, plain.solver_state) < 1e-12
    assert distance(sol.evaluate(0.7), plain.evaluate(0.7)) < 1e-12


# Events.


def down(t, y, args, **kwargs):
    """Falls through zero. The state it sees is the plain one."""
    assert y.shape == kwargs["terms"].vf(t, y, args).shape == (2,)
    return y[0] - args


def late(t, y, args, **kwargs):
    return t > 1.9


TWO_EVENTS = dfx.Event(
    {"late": late, "down": (down,)}, optx.Newton(1e-10, 1e-10), {"late": None, "down": (False,)}
)
EVENTS = {
    "found by a root finder": (TWO_EVENTS, ["augmented"]),
    "found by a root finder, all": (TWO_EVENTS, ["none", "sampled"]),
    "at the end of a step": (dfx.Event(late), ["augmented"]),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "event",
    ["found by a root finder", "found by a root finder, all", "at the end of a step"],
)
def test_events_are_those_of_diffrax(event):
    """One is at the end of a step, the other within it; in turn, one of them comes first."""
    saveat, (event, quadratures) = dfx.SaveAt(ts=TIMES, t1=True), EVENTS[event]
    for level in (0.0, -9.0):
        options = dict(saveat=saveat, event=event, args=jnp.array(level))
        plain = solve(dfx, **options)
        for quadrature in quadratures:
            sol = solve(tn, **options, **options_of(quadrature))
            assert sol.result == dfx.RESULTS.event_occurred
            assert distance(sol.event_mask, plain.event_mask) == 0
            assert distance((sol.ts, sol.ys), (plain.ts, plain.ys)) < 1e-12


@pytest.mark.slow
def test_steady_state_is_that_of_diffrax():
    """Its tolerances are those of the control, and its vector field the plain one."""

    def run(lib, **options):
        return lib.diffeqsolve(
            dfx.ODETerm(lambda t, y, args: args - y),
            dfx.Tsit5(),
            0.0,
            100.0,
            0.1,
            Y0,
            jnp.array([1.0, 2.0]),
            stepsize_controller=pid(1e-3),
            event=dfx.Event(dfx.steady_state_event()),
            **options,
        )

    plain, sol = run(dfx), run(tn, **options_of("augmented"))
    assert sol.result == dfx.RESULTS.event_occurred
    assert counts(sol) == counts(plain)
    assert distance((sol.ts, sol.ys), (plain.ts, plain.ys)) < 1e-12


class MeanEnergy(tn.KineticEnergy):
    """The mean over time, for which `finalize` needs the length of the path."""

    def finalize(self, integral, t0, t1):
        return integral / (t1 - t0)


@pytest.mark.parametrize("quadrature", [tn.Augmented(), tn.Sampled(points=100)])
def test_penalty_is_charged_up_to_the_event(quadrature):
    """With `z' = 2`, it is four times the time of the event, and its mean is 4."""
    # BUG, fixed: `finalize` got the end of the interval, so the mean of 4 was 0.6 of that.
    event = dfx.Event(lambda t, y, args, **kwargs: y - 1.2, optx.Newton(1e-10, 1e-10))
    sol = tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: jnp.full_like(y, 2.0)),
        dfx.Heun(),
        0.0,
        1.0,
        0.11,
        jnp.array(0.0),
        event=event,
        regularizer={"whole": tn.KineticEnergy(), "mean": MeanEnergy()},
        quadrature=quadrature,
        key=KEY,
    )
    np.testing.assert_allclose(sol.ts[0], 0.6, rtol=1e-8)
    # Each part of the interval is penalized or not, but for the one with the event in it.
    tolerance = 1e-8 if isinstance(quadrature, tn.Augmented) else 0.011 / 0.6
    np.testing.assert_allclose(sol.stats["penalty"]["whole"], 4 * 0.6, rtol=tolerance)
    np.testing.assert_allclose(sol.stats["penalty"]["mean"], 4.0, rtol=tolerance)


# What `BacksolveAdjoint` cannot do.


REFUSED = {
    "subs": (dict(saveat=dfx.SaveAt(subs=[dfx.SubSaveAt(t1=True)])), "SaveAt.*subs"),
    "steps": (dict(saveat=dfx.SaveAt(steps=True)), "steps"),
    "dense": (dict(saveat=dfx.SaveAt(dense=True, t1=True)), "dense"),
    "only dense": (dict(saveat=dfx.SaveAt(dense=True)), "dense|subs"),
    # BUG, fixed: quadratures called the function with a state of their own.
    "fn": (dict(saveat=dfx.SaveAt(t1=True, fn=angle)), "SaveAt.*fn"),
    "event": (dict(event=dfx.Event(late)), "event"),
}


@pytest.mark.parametrize("case", REFUSED)
@each_quadrature
def test_backsolve_refuses_naming_both_arguments(quadrature, case):
    options, name = REFUSED[case]
    options = dict(options, adjoint=dfx.BacksolveAdjoint(), **options_of(quadrature))
    with pytest.raises((NotImplementedError, ValueError), match=name) as error:
        solve(tn, **options)
    assert "BacksolveAdjoint" in str(error.value)


@pytest.mark.slow
def test_backsolve_saves_as_in_diffrax():
    """Also if not up to the end; the output times of quadratures are taken out again."""
    saveat = dfx.SaveAt(t0=True, ts=TIMES[1:])
    options = dict(saveat=saveat, adjoint=dfx.BacksolveAdjoint())
    plain = solve(dfx, **options)
    for quadrature in ("augmented", "sampled"):
        sol = solve(tn, **options, **options_of(quadrature))
        assert distance((sol.ts, sol.ys), (plain.ts, plain.ys)) < 1e-12


def test_backsolve_saves_at_times_of_another_type():
    # BUG, fixed: times of the user and sampled ones were concatenated as they are, where diffrax
    # converts the former.
    saveat = dfx.SaveAt(ts=jnp.array([0, 1, 2]))
    options = dict(saveat=saveat, adjoint=dfx.BacksolveAdjoint())
    sol = solve(tn, **options, **options_of("sampled"))
    np.testing.assert_array_equal(sol.ts, [0.0, 1.0, 2.0])
