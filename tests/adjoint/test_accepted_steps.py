"""The gradients are those of `RecursiveCheckpointAdjoint`, with fewer evaluations."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import taynode as tn
from tests.adjoint.problems import (
    check_equal,
    check_replayed,
    CONTROL,
    CROSSING,
    everything,
    gradient,
    MATRIX,
    PUSH,
    REFERENCE,
    STOPPING,
    Y0,
)


# Samples with steps of their own. The last one goes backward in time.
SAMPLES = (
    jax.tree.map(lambda y: jnp.stack([y, 8 * y, 0.1 * y]), Y0),
    MATRIX,
    PUSH,
    jnp.array([0.1, 0.1, 2.3]),
    jnp.array([2.3, 2.3, 0.1]),
)
AXES = (0, None, None, 0, 0)


@pytest.fixture(scope="module")
def batch():
    """A batch of solves at their ends, by the adjoint of diffrax."""
    return gradient(
        REFERENCE, inputs=SAMPLES, in_axes=AXES, solver=dfx.Dopri5(), saveat=dfx.SaveAt(t1=True)
    )


def test_all_outputs():
    options = {"solver": dfx.Dopri5(), "saveat": everything()}
    found = gradient(tn.AcceptedStepAdjoint(), **options)
    check_equal(found, gradient(REFERENCE, **options))


# Four states are fewer than steps, so that some steps are made a third time.
@pytest.mark.parametrize("checkpoints", [pytest.param(None, marks=pytest.mark.slow), 4])
def test_a_batch_of_solves(batch, checkpoints):
    found = gradient(
        tn.AcceptedStepAdjoint(checkpoints),
        inputs=SAMPLES,
        in_axes=AXES,
        solver=dfx.Dopri5(),
        saveat=dfx.SaveAt(t1=True),
        max_steps=None if checkpoints else 256,
    )
    check_equal(found, batch)


@pytest.mark.slow
def test_times_and_an_event():
    options = {"solver": dfx.Bosh3(), "saveat": dfx.SaveAt(t1=True, steps=3), "event": CROSSING}
    found = gradient(tn.AcceptedStepAdjoint(), with_times=True, **options)
    check_equal(found, gradient(REFERENCE, with_times=True, **options))


@pytest.mark.slow
def test_jumps_and_the_solve_of_taynode():
    """Where the vector field jumps, the last slope of a step is not the first of the next."""

    def total(strength, adjoint):
        solution = tn.diffeqsolve(
            dfx.ODETerm(lambda t, y, s: jnp.where(t < 0.7, 0.0, s) - 9 * jnp.sin(y)),
            dfx.Dopri5(),
            0.0,
            2.0,
            None,
            jnp.array([1.0, 2.0]),
            strength,
            saveat=dfx.SaveAt(ts=jnp.array([0.1, 0.75, 1.9])),
            stepsize_controller=dfx.ClipStepSizeController(CONTROL, jump_ts=jnp.array([0.7])),
            adjoint=adjoint,
        )
        return jnp.sum(jnp.square(solution.ys)), solution.stats["nfe"]

    run = jax.jit(jax.grad(total, has_aux=True), static_argnums=1)
    found, expected = (run(4.0, adjoint) for adjoint in (tn.AcceptedStepAdjoint(), REFERENCE))
    check_equal(found, expected)


def test_evaluations_are_counted():
    """Forward each stage once, and backward once per stage of each accepted step."""
    count = np.zeros((), int)

    def tell(y):
        count[...] += 1
        return np.tanh(y)

    # Its derivative needs its value, so that nobody can do without it.
    @jax.custom_jvp
    def field(y):
        return jax.pure_callback(
            tell, jax.ShapeDtypeStruct(y.shape, y.dtype), y, vmap_method="sequential"
        )

    @field.defjvp
    def _(primals, tangents):
        value = field(*primals)
        return value, (1 - value**2) * tangents[0]

    def solve(y0, field, adjoint):
        return dfx.diffeqsolve(
            dfx.ODETerm(lambda t, y, args: -9 * field(y)),
            dfx.Dopri5(),
            0.0,
            2.0,
            2.0,
            y0,
            stepsize_controller=CONTROL,
            adjoint=adjoint,
        )

    run = jax.jit(jax.grad(lambda y0: solve(y0, field, tn.AcceptedStepAdjoint()).ys[0]))
    stats = jax.jit(lambda y0: solve(y0, jnp.tanh, REFERENCE).stats)(jnp.array(2.3))
    num_steps, num_accepted = int(stats["num_steps"]), int(stats["num_accepted_steps"])
    assert num_steps > num_accepted
    jax.block_until_ready(run(jnp.array(2.3)))
    # The first slope is one more, forward.
    assert int(count) <= 6 * num_steps + 6 * num_accepted + 1


def sharded(function):
    """A function of rows and of what they share, on a mesh of one device."""
    mesh = jax.make_mesh((1,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec
    return jax.shard_map(
        function, mesh=mesh, in_specs=(spec("batch"), spec()), out_specs=spec("batch")
    )


def ends(y0, matrix, *, closes_over=False):
    field = lambda t, y, m: jnp.tanh(y @ (matrix if closes_over else m))
    return dfx.diffeqsolve(
        dfx.ODETerm(field),
        dfx.Dopri5(),
        0.0,
        1.0,
        0.1,
        y0,
        None if closes_over else matrix,
        stepsize_controller=CONTROL,
        adjoint=tn.AcceptedStepAdjoint(),
        throw=False,
    ).ys[0]


ROWS = jnp.arange(6.0).reshape(3, 2) / 6


@pytest.mark.parametrize("per_sample", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_inside_shard_map(per_sample):
    solve = jax.vmap(ends, in_axes=(0, None)) if per_sample else ends
    found, expected = (
        jax.jit(jax.grad(lambda m, run=run: jnp.sum(run(ROWS, m) ** 2)))(MATRIX)
        for run in (sharded(solve), solve)
    )
    check_equal(found, expected)


def test_arrays_that_a_field_closes_over_inside_shard_map_are_refused():
    run = sharded(lambda y0, matrix: ends(y0, matrix, closes_over=True))
    with pytest.raises(ValueError, match=r"Pass them through `args`"):
        jax.grad(lambda m: jnp.sum(run(ROWS, m)))(MATRIX)


@pytest.mark.parametrize("number", [0, -3, True])
def test_wrong_numbers_of_checkpoints_are_refused(number):
    with pytest.raises(ValueError, match=r"`checkpoints` must be a Python integer of at least 1"):
        tn.AcceptedStepAdjoint(checkpoints=number)


def test_unsafe_brownian_motion_is_refused():
    path = dfx.UnsafeBrownianPath((), jax.random.key(0))
    terms = dfx.MultiTerm(
        dfx.ODETerm(lambda t, y, args: -y), dfx.ControlTerm(lambda t, y, args: y, path)
    )
    with pytest.raises(ValueError, match=r"Use `adjoint=diffrax.ForwardMode\(\)`"):
        dfx.diffeqsolve(
            terms, dfx.Heun(), 0.0, 1.0, 0.1, jnp.array(1.0), adjoint=tn.AcceptedStepAdjoint()
        )


def test_forward_mode_is_answered_with_the_adjoint_to_take():
    def end(y0):
        term = dfx.ODETerm(lambda t, y, args: -y)
        return tn.diffeqsolve(term, dfx.Euler(), 0.0, 1.0, 0.5, y0).ys

    with pytest.raises(TypeError) as error:
        jax.jvp(end, (jnp.array(1.0),), (jnp.array(1.0),))
    assert "`adjoint=diffrax.ForwardMode()`" in "".join(error.value.__notes__)


SOLVERS = {
    "Euler": dfx.Euler(),
    "Heun": dfx.Heun(),
    "Tsit5": dfx.Tsit5(),
    "Dopri8": dfx.Dopri8(),
    "HalfSolver": dfx.HalfSolver(dfx.Bosh3()),
    "CashKarp": tn.solvers.CashKarp(),
    "RK4": tn.solvers.RK4(),
    # Replayed steps have no tolerance of their own.
    "Kvaerno3": dfx.Kvaerno3(root_finder=dfx.VeryChord(1e-8, 1e-8, norm=optx.max_norm)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_all_solvers(name):
    check_solver(name, saveat=everything())


# What an event does to a replay depends on the state that a solver carries along: that of Euler is
# empty, that of Tsit5 has the last slope, and Kvaerno3 finds roots. It does not depend on tableaus.
@pytest.mark.slow
@pytest.mark.parametrize("event", [CROSSING, STOPPING], ids=["crossing", "stopping"])
@pytest.mark.parametrize("name", ["Euler", "Tsit5", "Kvaerno3"])
def test_events(name, event):
    check_solver(name, saveat=dfx.SaveAt(t1=True, steps=2), event=event)


def check_solver(name, **options):
    fixed = name in ("Euler", "RK4")
    control = dfx.StepTo(jnp.linspace(0.1, 2.3, 30)) if fixed else CONTROL
    # Heun takes more than 256.
    options |= {"solver": SOLVERS[name], "control": control, "max_steps": 2048}
    found = gradient(tn.AcceptedStepAdjoint(), **options)
    check_equal(found, gradient(REFERENCE, **options))
    check_replayed(found, **options)


@pytest.mark.slow
def test_backward_in_time_and_every_sample_of_a_batch():
    """Against central differences of a solve that repeats the accepted steps."""
    options = {"solver": dfx.Tsit5(), "saveat": dfx.SaveAt(t1=True)}
    found = gradient(tn.AcceptedStepAdjoint(), inputs=SAMPLES, in_axes=AXES, **options)
    for i in range(3):
        of_one = jax.tree.map(lambda x, i=i: x[i], found)
        y0, matrix, push, *times = SAMPLES
        y0, times = jax.tree.map(lambda x, i=i: x[i], (y0, times))
        check_replayed(of_one, inputs=(y0, matrix, push, *times), **options)


@pytest.mark.slow
def test_second_derivatives():
    """Forward mode over reverse mode, without output times."""

    def end(y0):
        return dfx.diffeqsolve(
            dfx.ODETerm(lambda t, y, m: jnp.tanh(m @ y)),
            dfx.Tsit5(),
            0.0,
            1.0,
            0.1,
            y0,
            MATRIX,
            adjoint=tn.AcceptedStepAdjoint(),
        ).ys

    gradient = jax.jit(jax.grad(lambda y0: jnp.sum(jnp.square(end(y0)))))
    y0, size = jnp.array([0.3, -0.4]), 1e-5
    shifts = size * jnp.eye(2)
    differences = [(gradient(y0 + s) - gradient(y0 - s)) / (2 * size) for s in shifts]
    check_equal(jax.jit(jax.jacfwd(gradient))(y0), jnp.stack(differences, 1), rtol=1e-8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Complex dtype support in Diffrax")
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.complex128])
def test_other_types(dtype):
    time = jnp.finfo(dtype).dtype
    y0, matrix = jnp.array([1.0, 0.4], dtype), MATRIX.astype(dtype)

    def run(adjoint):
        def total(y0, matrix):
            ys = dfx.diffeqsolve(
                dfx.ODETerm(lambda t, y, m: m @ y * (1 - 0.1 * jnp.abs(y[0]) ** 2)),
                dfx.Tsit5(),
                jnp.array(0, time),
                jnp.array(1, time),
                None,
                y0,
                matrix,
                stepsize_controller=CONTROL,
                adjoint=adjoint,
            ).ys
            return jnp.sum(jnp.abs(ys) ** 2)

        # diffrax multiplies real and complex numbers.
        with jax.numpy_dtype_promotion("standard"):
            return jax.jit(jax.grad(total, argnums=(0, 1)))(y0, matrix)

    tolerance = 1e-4 if dtype == jnp.float32 else 1e-10
    check_equal(run(tn.AcceptedStepAdjoint()), run(REFERENCE), rtol=tolerance)
