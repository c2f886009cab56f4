"""`UnrolledDopri5` does what `diffrax.Dopri5` does, with fewer evaluations in reverse mode."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import taynode as tn
from taynode.lab.config import SolveConfig
from taynode.lab.training.build import make_solve
from taynode.solvers import UnrolledDopri5


JUMP = 0.7
Y0 = {"angle": jnp.array([1.0, 2.0]), "speed": jnp.array([0.0, 0.5])}
NUM_STEPS = 8
TIMES = jnp.array([0.1, 0.75, 1.9])


def pendulum(t, y, strength):
    push = jnp.where(t < JUMP, 0.0, strength)
    return {"angle": y["speed"], "speed": push - 9 * jnp.sin(y["angle"])}


def solve(solver, y0, strength, *, jumps=False):
    controller = dfx.PIDController(rtol=1e-6, atol=1e-6)
    if jumps:
        controller = dfx.ClipStepSizeController(controller, jump_ts=jnp.array([JUMP]))
    # The first step is far too large, so that some are rejected.
    return tn.diffeqsolve(
        dfx.ODETerm(pendulum),
        solver,
        0.0,
        2.0,
        2.0,
        y0,
        strength,
        saveat=dfx.SaveAt(ts=TIMES, t1=True),
        stepsize_controller=controller,
    )


def test_steps_values_and_gradients_are_those_of_diffrax():
    def total(inputs, solver):
        solution = solve(solver, *inputs, jumps=True)
        return sum(jnp.sum(x**3) for x in solution.ys.values()), (solution.ys, solution.stats)

    @eqx.filter_jit
    def both(solver, y0, strength):
        gradient, (ys, stats) = jax.grad(total, has_aux=True)((y0, strength), solver)
        return ys, stats, gradient

    found, expected = (both(s, Y0, jnp.array(4.0)) for s in (UnrolledDopri5(), dfx.Dopri5()))
    assert found[1]["num_rejected_steps"] > 0
    for name in ("num_steps", "num_accepted_steps", "num_rejected_steps", "nfe"):
        assert found[1][name] == expected[1][name]
    for one, other in zip(*(jax.tree.leaves((x[0], x[2])) for x in (found, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_batches_of_solves():
    """Under `vmap`, each sample has steps of its own."""
    y0 = jax.tree.map(lambda x: jnp.stack([x, 3 * x]), Y0)
    run = eqx.filter_jit(lambda solver: jax.vmap(lambda y: solve(solver, y, 4.0).ys)(y0))
    ends = [run(solver) for solver in (UnrolledDopri5(), dfx.Dopri5())]
    for one, other in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_reverse_mode_evaluates_twice_per_stage_and_not_three_times():
    """Counted as it runs: forwards, and once more for the reverse pass."""
    count = np.zeros((), int)

    def tell(y):
        count[...] += 1
        return np.tanh(y)

    # Its derivative needs its value, so that nobody can do without it.
    @jax.custom_jvp
    def field(y):
        return jax.pure_callback(tell, jax.ShapeDtypeStruct(y.shape, y.dtype), y)

    @field.defjvp
    def _(primals, tangents):
        value = field(*primals)
        return value, (1 - value**2) * tangents[0]

    def evaluations(solver):
        @jax.jit
        @jax.grad
        def gradient(y0):
            return tn.diffeqsolve(
                dfx.ODETerm(lambda t, y, args: field(y)),
                solver,
                0.0,
                1.0,
                1 / NUM_STEPS,
                y0,
                max_steps=NUM_STEPS,
                adjoint=dfx.RecursiveCheckpointAdjoint(checkpoints=NUM_STEPS),
            ).ys[0]

        before = int(count)
        jax.block_until_ready(gradient(jnp.array(0.3)))
        return int(count) - before

    num_stages = 6 * NUM_STEPS
    assert 3 * num_stages <= evaluations(dfx.Dopri5()) <= 3 * num_stages + 3
    assert 2 * num_stages <= evaluations(UnrolledDopri5()) <= 2 * num_stages + 2


def test_training_asks_for_it_by_name():
    named = SolveConfig().for_training()
    assert named.solver == "unrolled_dopri5"
    assert isinstance(make_solve(named).solver, UnrolledDopri5)
    assert isinstance(make_solve(SolveConfig()).solver, dfx.Dopri5)
    assert SolveConfig(solver="rk4").for_training().solver == "rk4"
