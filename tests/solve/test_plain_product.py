"""Without a regularizer, the solve is diffrax's: on a product of its features."""

import inspect

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
import pytest

import taynode as tn
from tests.integration.problems import counts, distance, pid, Y0


CONSTANT = dfx.ConstantStepSize()
MEMORY = pid(1e-3, pcoeff=0.3, icoeff=0.4)
JUMPING = dfx.ClipStepSizeController(MEMORY, jump_ts=jnp.array([0.4]))
# The first step is too large for those that adapt, so that some are rejected.
SOLVERS = {
    "same-as-last, jumps": (dfx.Dopri5(), JUMPING, 0.6),
    "constant steps": (dfx.Heun(), CONSTANT, 0.15),
    "implicit": (dfx.Kvaerno3(), pid(1e-3), 0.6),
    "ours": (tn.solvers.CashKarp(), pid(1e-3), 0.6),
}


def energy(t, y, args):
    return {"energy": jnp.sum(y**2), "time": t}


def times(direction):
    return jnp.array([0.2, 0.5]) if direction > 0 else jnp.array([0.5, 0.2])


SAVES = {
    "t1": lambda ts: dfx.SaveAt(t1=True),
    "ts": lambda ts: dfx.SaveAt(t0=True, ts=ts),
    "steps": lambda ts: dfx.SaveAt(
        steps=True, dense=True, solver_state=True, controller_state=True
    ),
    "subs": lambda ts: dfx.SaveAt(
        subs=[dfx.SubSaveAt(steps=2), {"a": dfx.SubSaveAt(ts=ts, t1=True, fn=energy)}],
        made_jump=True,
    ),
}


def boolean(t, y, args, **others):
    return y[0] < args["end"]


def crossing(t, y, args, **others):
    return y[0] - args["within"]


NEVER = -9.0
EVENTS = {
    "none": None,
    "events": dfx.Event(
        {"end": boolean, "within": crossing},
        optx.Newton(1e-8, 1e-8),
        {"end": None, "within": False},
    ),
}
# At which state each of them occurs: at the end of a step, or within it.
THRESHOLDS = [
    {"end": NEVER, "within": NEVER},
    {"end": 0.8, "within": NEVER},
    {"end": NEVER, "within": 0.8},
]
ADJOINTS = [
    tn.AcceptedStepAdjoint(),
    dfx.RecursiveCheckpointAdjoint(),
    dfx.DirectAdjoint(),
    dfx.ForwardMode(),
]
# Solvers, kinds of output and adjoints meet with and without events; each solver meets two of the
# kinds of output and two of the adjoints.
CASES = [
    pytest.param(
        solver,
        event,
        list(SAVES)[(i + 2 * j) % len(SAVES)],
        ADJOINTS[(i + j) % len(ADJOINTS)],
        # The longest, and part of it with events that do not occur.
        marks=pytest.mark.slow if (solver, event) == ("implicit", "none") else (),
    )
    for i, solver in enumerate(SOLVERS)
    for j, event in enumerate(EVENTS)
]
BACKSOLVE = ("ours", "none", "ts", dfx.BacksolveAdjoint())


def field(t, y, args):
    return jnp.stack([y[1], -4 * jnp.sin(y[0]) + jnp.cos(3 * t)])


@pytest.mark.parametrize(
    ("solver", "event", "save", "adjoint"),
    [*CASES, BACKSOLVE],
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)
def test_plain_solves_are_those_of_diffrax(solver, event, save, adjoint):
    """The same result, steps and values, with events that occur and events that do not."""
    method, controller, step = SOLVERS[solver]

    def run(lib, span, ts, thresholds):
        t0, t1 = span
        return lib.diffeqsolve(
            dfx.ODETerm(field),
            method,
            t0,
            t1,
            jnp.sign(t1 - t0) * step,
            Y0,
            thresholds,
            saveat=SAVES[save](ts),
            stepsize_controller=controller,
            adjoint=adjoint,
            event=EVENTS[event],
            max_steps=16,
        )

    both = eqx.filter_jit(lambda *problem: (run(dfx, *problem), run(tn, *problem)))
    for span in ([0.0, 0.8], [0.8, 0.0]):
        for thresholds in THRESHOLDS if event != "none" else THRESHOLDS[:1]:
            ts = times(span[1] - span[0])
            plain, sol = both(jnp.array(span), ts, jax.tree.map(jnp.array, thresholds))
            occurs = {name: threshold != NEVER for name, threshold in thresholds.items()}
            assert bool(plain.result == dfx.RESULTS.event_occurred) == any(occurs.values())
            assert plain.event_mask is None or plain.event_mask == occurs
            assert sol.result == plain.result
            assert counts(sol) == counts(plain)
            fields = ("t0", "t1", "ts", "ys", "solver_state", "made_jump", "event_mask")
            for name in fields:
                assert distance(getattr(sol, name), getattr(plain, name)) < 1e-12, name
            # Control divides by error estimates, which are small.
            assert distance(sol.controller_state, plain.controller_state) < 1e-6
            if save == "steps":
                assert distance(sol.evaluate(0.3), plain.evaluate(0.3)) < 1e-12


def test_every_argument_of_diffrax_is_taken():
    # BUG, fixed: `discrete_terminating_event` was missing.
    theirs, ours = (inspect.signature(lib.diffeqsolve).parameters for lib in (dfx, tn))
    for name, parameter in theirs.items():
        assert ours[name].kind == parameter.kind
        if name != "adjoint":  # which is not equal to itself
            assert ours[name].default == parameter.default
    assert set(ours) - set(theirs) == {"regularizer", "quadrature", "key"}


OLD_EVENT = dfx.DiscreteTerminatingEvent(  # pyright: ignore[reportPrivateImportUsage]
    lambda state, **others: (state.y[0] < 0.5) & (state.tprev > 0.2)
)


def test_deprecated_event_is_that_of_diffrax():
    def run(lib, **options):
        return lib.diffeqsolve(
            dfx.ODETerm(field),
            dfx.Heun(),
            0.0,
            2.0,
            0.1,
            Y0,
            discrete_terminating_event=OLD_EVENT,
            **options,
        )

    with pytest.warns(UserWarning, match="deprecated"):
        plain = run(dfx)
    for options in ({}, {"regularizer": tn.KineticEnergy(), "quadrature": tn.Augmented()}):
        with pytest.warns(UserWarning, match="deprecated") as caught:
            sol = run(tn, **options)
        assert caught[0].filename == __file__
        assert sol.result == plain.result == dfx.RESULTS.event_occurred
        assert distance((sol.ts, sol.ys), (plain.ts, plain.ys)) < 1e-12
    with pytest.raises(ValueError, match="cannot be used together"):
        run(tn, event=dfx.Event(boolean))
