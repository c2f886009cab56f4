"""Regularizers of stochastic differential equations, on fixed Brownian paths."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx
import numpy as np
import pytest
from scipy.integrate import trapezoid

import taynode as tn
from tests.integration.problems import distance, KEY, pid, Tally


# One realization for all tests.
PATH = dfx.VirtualBrownianTree(0.0, 1.0, 2.0**-14, (2,), jr.key(3), levy_area=dfx.SpaceTimeLevyArea)
Y0 = np.array([1.2, -0.7])
PARAMETERS = {"rate": 1.5, "noise": 0.4}
GRID = np.linspace(0.0, 1.0, 2**12 + 1)
FIXED = dfx.ConstantStepSize()


def decay(t, y, args):
    return -args["rate"] * y


def additive(t, y, args):
    return lx.DiagonalLinearOperator(args["noise"] * jnp.ones(2))


def multiplicative(t, y, args):
    return lx.DiagonalLinearOperator(args["noise"] * y)


def sde(diffusion, path=PATH):
    return dfx.MultiTerm(dfx.ODETerm(decay), dfx.ControlTerm(diffusion, path))


def solve(diffusion, solver, regularizer=None, quadrature=None, args=None, *, lib=tn, **options):
    options = {"stepsize_controller": FIXED, "max_steps": 4096, "y0": jnp.asarray(Y0)} | options
    terms = options.pop("terms", None) or sde(diffusion)
    if regularizer is not None:
        options |= dict(regularizer=regularizer, quadrature=quadrature)
        options.setdefault("key", KEY)
    y0, dt0 = options.pop("y0"), options.pop("dt0", 1 / 256)
    return lib.diffeqsolve(
        terms, solver, 0.0, 1.0, dt0, y0, PARAMETERS if args is None else args, **options
    )


@pytest.fixture(scope="module")
def motion():
    return np.asarray(jax.jit(jax.vmap(PATH.evaluate))(jnp.asarray(GRID)))


def ornstein_uhlenbeck(motion):
    """Integration by parts takes the noise out of the integral."""
    rate, noise = PARAMETERS["rate"], PARAMETERS["noise"]
    slope = np.exp(rate * GRID)[:, None] * motion
    areas = np.cumsum((slope[1:] + slope[:-1]) / 2, axis=0) * (GRID[1] - GRID[0])
    past = np.exp(-rate * GRID)[:, None] * np.concatenate([np.zeros((1, 2)), areas])
    return np.exp(-rate * GRID)[:, None] * Y0 + noise * (motion - rate * past)


def geometric(motion):
    """Of the Stratonovich equation."""
    rate, noise = PARAMETERS["rate"], PARAMETERS["noise"]
    return Y0 * np.exp(-rate * GRID[:, None] + noise * motion)


CASES = {
    "additive": (additive, dfx.ShARK(), ornstein_uhlenbeck),
    "Heun": (multiplicative, dfx.Heun(), geometric),
    "SPaRK": (multiplicative, dfx.SPaRK(), geometric),
}
SLOPES = {"K": tn.KineticEnergy(), "R_2": tn.TotalDerivative(2), "noise": tn.DiffusionNorm()}


@pytest.mark.parametrize(
    "case", ["SPaRK", *(pytest.param(x, marks=pytest.mark.slow) for x in ("additive", "Heun"))]
)
def test_penalties_are_those_of_the_closed_form(case, motion):
    """The drift's k-th derivative is that of its own flow: (-rate)^k y."""
    diffusion, solver, closed_form = CASES[case]
    path = closed_form(motion)
    rate, noise = PARAMETERS["rate"], PARAMETERS["noise"]
    energy = trapezoid(np.mean(path**2, axis=1), GRID)
    expected = {
        "K": rate**2 * energy,
        "R_2": rate**4 * energy,
        "noise": noise**2 * (1.0 if case == "additive" else energy),
    }
    for quadrature in (tn.Augmented(), tn.Sampled(points=100)):
        sol = solve(diffusion, solver, SLOPES, quadrature)
        np.testing.assert_allclose(sol.ys[-1], path[-1], rtol=5e-3)
        for name, value in expected.items():
            np.testing.assert_allclose(sol.stats["penalty"][name], value, rtol=5e-3)


@pytest.mark.slow
def test_sampled_has_the_mean_of_augmented():
    sampled = lambda key: solve(
        additive, dfx.ShARK(), SLOPES, tn.Sampled(), key=key, dt0=1 / 16
    ).stats["penalty"]["R_2"]
    values = np.asarray(jax.jit(jax.vmap(sampled))(jr.split(KEY, 2000)))
    exact = solve(additive, dfx.ShARK(), SLOPES, tn.Augmented(), dt0=1 / 16).stats["penalty"]["R_2"]
    assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(len(values))
    assert values.std() > 0.1 * exact


class Here(tn.AbstractRegularizer):
    """Its rate is the point of the path."""

    def rate(self, vector_field, t, y, args, state):
        return vector_field(t, y, args), (t, y)


def error_of(solver, diffusion, t0, t1, y0):
    """By diffrax, in units of the tolerance."""

    @jax.jit
    def step(t0, t1, y0):
        terms = sde(diffusion)
        state = solver.init(terms, t0, t1, y0, PARAMETERS)
        return solver.step(terms, t0, t1, y0, PARAMETERS, state, False)[:2]

    y1, error = map(np.asarray, step(jnp.asarray(t0), jnp.asarray(t1), y0))
    scale = 1e-3 + 1e-3 * np.maximum(np.abs(y0), np.abs(y1))
    return np.sqrt(np.mean((error / scale) ** 2))


ESTIMATES = {
    "SPaRK": (multiplicative, dfx.SPaRK()),
    "half": (multiplicative, dfx.HalfSolver(dfx.EulerHeun())),
    "ShARK": (additive, dfx.ShARK()),
}


@pytest.mark.parametrize(
    "case", ["ShARK", *(pytest.param(x, marks=pytest.mark.slow) for x in ("SPaRK", "half"))]
)
def test_error_estimates_are_those_of_diffrax(case):
    diffusion, solver = ESTIMATES[case]
    controller = pid(1e-3)
    sol = solve(
        diffusion,
        solver,
        tn.ErrorEstimate(),
        tn.AcceptedSteps(),
        stepsize_controller=controller,
        saveat=dfx.SaveAt(t0=True, steps=True),
        key=None,
    )
    assert sol.stats["num_rejected_steps"] > 0
    steps = int(sol.stats["num_accepted_steps"])
    ts, ys = sol.ts[: steps + 1], sol.ys[: steps + 1]

    @jax.jit
    def errors(starts, ends, states):
        each = lambda t0, t1, y: solver.step(sde(diffusion), t0, t1, y, PARAMETERS, None, False)[:2]
        return jax.vmap(each)(starts, ends, states)

    y1, error = map(np.asarray, errors(ts[:-1], ts[1:], ys[:-1]))
    np.testing.assert_allclose(y1, ys[1:], rtol=1e-10)
    scale = 1e-3 + 1e-3 * np.maximum(np.abs(ys[:-1]), np.abs(y1))
    scaled = np.sqrt(np.mean((error / scale) ** 2, axis=1))
    assert (scaled < 1).all()
    np.testing.assert_allclose(sol.stats["penalty"], np.sum(scaled * np.diff(ts)), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["ShARK", "SPaRK", "half"])
def test_trial_steps_are_on_the_same_brownian_path(case):
    diffusion, solver = ESTIMATES[case]
    regularizers = {"error": tn.ErrorEstimate(rtol=1e-3, atol=1e-3), "point": Here()}
    penalty = solve(diffusion, solver, regularizers, tn.Sampled(), dt0=1 / 32).stats["penalty"]
    t, y = penalty["point"]
    assert 0 < t < 1 - 1 / 32
    expected = error_of(solver, diffusion, t, t + 1 / 32, y)
    np.testing.assert_allclose(penalty["error"], expected, rtol=1e-8)


@pytest.mark.slow
def test_trial_steps_of_adaptive_solves_have_the_length_that_control_chooses():
    """After a step of length `dt0` from there."""
    regularizers, solver = {"error": tn.ErrorEstimate(), "point": Here()}, dfx.SPaRK()
    penalty = solve(
        multiplicative,
        solver,
        regularizers,
        tn.Sampled(),
        dt0=1 / 64,
        stepsize_controller=pid(1e-3),
    ).stats["penalty"]
    t, y = penalty["point"]
    size = error_of(solver, multiplicative, t, t + 1 / 64, y)
    order = solver.strong_order(None) + 0.5
    length = min(1 / 64 * np.clip(0.9 * size ** (-1 / order), 0.2, 10), 1 - t)
    expected = error_of(solver, multiplicative, t, t + length, y)
    np.testing.assert_allclose(penalty["error"], expected, rtol=1e-8)


ERROR = tn.ErrorEstimate(rtol=1e-2, atol=1e-2)
WAYS = {
    "sampled": (SLOPES | {"error": ERROR}, tn.Sampled(points=2)),
    "augmented": (SLOPES, tn.Augmented()),
    "steps": (ERROR, tn.AcceptedSteps()),
}


@pytest.mark.parametrize(
    ("way", "case"),
    [
        ("sampled", "additive"),
        pytest.param("sampled", "SPaRK", marks=pytest.mark.slow),
        pytest.param("augmented", "additive", marks=pytest.mark.slow),
        pytest.param("augmented", "SPaRK", marks=pytest.mark.slow),
        pytest.param("steps", "additive", marks=pytest.mark.slow),
        pytest.param("steps", "SPaRK", marks=pytest.mark.slow),
    ],
)
def test_gradients_are_finite_differences_on_the_path(way, case):
    diffusion, solver, _ = CASES[case]

    @jax.jit
    @jax.value_and_grad
    def both(vector):
        args = {"rate": vector[0], "noise": vector[1]}
        sol = solve(diffusion, solver, *WAYS[way], args, y0=vector[2:], dt0=1 / 8)
        return sum(jax.tree.leaves(sol.stats["penalty"])) + jnp.sum(sol.ys**2)

    point = np.array([*PARAMETERS.values(), *Y0])
    _, gradient = both(point)
    step = 1e-6 * np.eye(len(point))
    differences = [(both(point + d)[0] - both(point - d)[0]) / 2e-6 for d in step]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-8)
    assert (np.abs(gradient) > 1e-4).all()


@pytest.mark.slow
def test_gradients_of_adaptive_solves_are_those_of_diffrax():
    """With the step sizes held fixed, which finite differences do not do."""

    def gradient(adjoint):
        def total(args):
            sol = solve(
                multiplicative,
                dfx.SPaRK(),
                tn.ErrorEstimate(),
                tn.AcceptedSteps(),
                args,
                adjoint=adjoint,
                stepsize_controller=pid(1e-3),
            )
            return sol.stats["penalty"]

        return jax.jit(jax.grad(total))(jax.tree.map(jnp.asarray, PARAMETERS))

    ours, theirs = map(gradient, (tn.AcceptedStepAdjoint(), dfx.RecursiveCheckpointAdjoint()))
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-8)


@pytest.mark.parametrize(
    "way",
    [
        (tn.ErrorEstimate(), tn.AcceptedSteps()),
        pytest.param((SLOPES, tn.Sampled()), marks=pytest.mark.slow),
        pytest.param((SLOPES, tn.Augmented()), marks=pytest.mark.slow),
    ],
)
def test_the_penalty_does_not_change_steps(way):
    options = dict(stepsize_controller=pid(1e-3), saveat=dfx.SaveAt(steps=True), max_steps=512)
    plain = solve(multiplicative, dfx.SPaRK(), lib=dfx, **options)
    ours = solve(multiplicative, dfx.SPaRK(), *way, **options)
    assert distance(ours.ts, plain.ts) == 0
    assert distance(ours.ys, plain.ys) < 1e-13
    assert ours.stats["nfe_exact"]


class Points(Tally):
    """Notes points instead of times."""

    def note(self, t, y):  # pyright: ignore[reportIncompatibleMethodOverride]
        note = lambda t, y: self._times.append((float(t), *map(float, y)))
        jax.debug.callback(note, t, y)


DRIFT, NOISE = Points(), Points()


def counted(diffusion, path=PATH):
    def f(t, y, args):
        DRIFT.note(t, y)
        return jnp.sin(3 * decay(t, y, args))

    def g(t, y, args):
        # Additive noise must not depend on the state.
        NOISE.note(t, y if diffusion is multiplicative else Y0)
        return diffusion(t, y, args)

    return dfx.MultiTerm(dfx.ODETerm(f), dfx.ControlTerm(g, path))


def distinct(points):
    """Solvers evaluate a product for an increment, and at the same point for its Levy area."""
    return sum(a != b for a, b in zip(points, [None, *points[:-1]], strict=True))


SOLVERS = [
    pytest.param(multiplicative, dfx.SPaRK(), id="SPaRK"),
    pytest.param(additive, dfx.ShARK(), id="ShARK"),
    *(
        pytest.param(diffusion, solver, id=name, marks=pytest.mark.slow)
        for name, diffusion, solver in [
            ("Heun", multiplicative, dfx.Heun()),
            ("Half(EulerHeun)", multiplicative, dfx.HalfSolver(dfx.EulerHeun())),
            ("SRA1", additive, dfx.SRA1()),
            ("Half(GeneralShARK)", multiplicative, dfx.HalfSolver(dfx.GeneralShARK())),
            ("Half(SlowRK)", multiplicative, dfx.HalfSolver(dfx.SlowRK())),
            ("ReversibleHeun", multiplicative, dfx.ReversibleHeun()),
            ("Half(SPaRK)", multiplicative, dfx.HalfSolver(dfx.SPaRK())),
            ("Midpoint", multiplicative, dfx.Midpoint()),
        ]
    ),
]


@pytest.mark.parametrize(("diffusion", "solver"), SOLVERS)
@pytest.mark.parametrize("adaptive", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_evaluations_of_drift_and_diffusion_are_those_of_counters(diffusion, solver, adaptive):
    DRIFT.take()
    NOISE.take()
    controller = pid(2e-2) if adaptive else FIXED
    sol = solve(None, solver, terms=counted(diffusion), stepsize_controller=controller, dt0=1 / 8)
    drift, noise = DRIFT.take(), NOISE.take()
    if diffusion is additive:
        # `init` of the solver checks that the noise is additive; the compiler drops its result.
        noise = noise[1:]
    has_areas = isinstance(solver, dfx.AbstractSRK) and diffusion is multiplicative
    numbers = len(drift), distinct(noise) if has_areas else len(noise)
    assert tuple(map(int, sol.stats["nfe_by_term"])) == numbers
    assert sol.stats["nfe"] == numbers[0]
    assert sol.stats["nfe_exact"] is True
    assert adaptive is False or sol.stats["num_rejected_steps"] > 0


@pytest.mark.slow
def test_the_compiler_evaluates_noise_once_for_an_increment_and_its_area():
    """So that counts of evaluations are those of the compiled program."""

    def g(t, y, args):
        return lx.DiagonalLinearOperator(jnp.arctan2(y, args["noise"]))

    run = lambda y0: solve(g, dfx.SPaRK(), y0=y0, adjoint=dfx.ForwardMode()).ys
    program = jax.jit(run).lower(jnp.asarray(Y0))
    assert program.as_text().count("stablehlo.atan2") == 2
    assert program.compile().as_text().count(" atan2(") == 1


@pytest.mark.slow
def test_milstein_counts_are_not_exact():
    """It evaluates derivatives of the diffusion."""
    sol = solve(multiplicative, dfx.StratonovichMilstein(), dt0=1 / 8)
    assert sol.stats["nfe_exact"] is False
    assert sol.stats["nfe"] == 8


def matrix(t, y, args):
    """Three sources of noise for two elements, as an array."""
    return args["noise"] * jnp.outer(y, jnp.array([1.0, 2.0, -1.0]))


def operator(t, y, args):
    return lx.MatrixLinearOperator(matrix(t, y, args))


@pytest.mark.parametrize("diffusion", [matrix, pytest.param(operator, marks=pytest.mark.slow)])
def test_the_norm_of_a_matrix_of_noise(diffusion):
    path = dfx.VirtualBrownianTree(0.0, 1.0, 1e-3, (3,), jr.key(1))
    regularizers = {
        "all": tn.DiffusionNorm(),
        "second": tn.DiffusionNorm(where=lambda y: y[1]),
        "point": Here(),
    }
    options = dict(terms=sde(diffusion, path), dt0=1 / 16)
    penalty = solve(None, dfx.Heun(), regularizers, tn.Sampled(), **options).stats["penalty"]
    _, y = penalty["point"]
    g = PARAMETERS["noise"] * np.outer(y, [1.0, 2.0, -1.0])
    np.testing.assert_allclose(penalty["all"], np.sum(g**2) / 2, rtol=1e-12)
    np.testing.assert_allclose(penalty["second"], np.sum(g[1] ** 2), rtol=1e-12)


@pytest.mark.slow
def test_samples_with_paths_of_their_own():
    def one(key):
        path = dfx.VirtualBrownianTree(0.0, 1.0, 1e-3, (2,), key, levy_area=dfx.SpaceTimeLevyArea)
        return solve(
            None,
            dfx.SPaRK(),
            {"slopes": SLOPES, "error": tn.ErrorEstimate()},
            tn.Sampled(),
            terms=sde(multiplicative, path),
            stepsize_controller=pid(1e-2),
        ).stats

    keys = jr.split(jr.key(5), 3)
    stats = jax.jit(jax.vmap(one))(keys)
    for i, key in enumerate(keys):
        alone = jax.jit(one)(key)
        for name in ("penalty", "nfe", "nfe_by_term"):
            mine = jax.tree.map(lambda x, i=i: x[i], stats[name])
            for a, b in zip(*map(jax.tree.leaves, (mine, alone[name])), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-8)
    assert len(set(np.asarray(stats["nfe"]).tolist())) > 1


ROWS = dfx.VirtualBrownianTree(0.0, 1.0, 1e-3, (3, 2), jr.key(4))
BATCH = np.array([[1.0, 2.0], [0.5, -1.0], [-2.0, 0.1]])


def row_noise(t, y, args):
    return lx.DiagonalLinearOperator(args["noise"] * y)


@pytest.mark.slow
def test_rows_of_a_joint_batch_have_times_of_their_own():
    quadrature = tn.Sampled(points=60, batch_axis=0)
    options = dict(terms=sde(row_noise, ROWS), y0=jnp.asarray(BATCH), dt0=1 / 64)
    rows = solve(None, dfx.Heun(), SLOPES, quadrature, **options).stats["penalty"]
    whole = solve(None, dfx.Heun(), SLOPES, tn.Augmented(), **options).stats["penalty"]
    for name in SLOPES:
        np.testing.assert_allclose(rows[name], whole[name], rtol=2e-2)


def test_trial_steps_of_single_rows_are_refused():
    quadrature, error = tn.Sampled(batch_axis=0), tn.ErrorEstimate(rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="structure") as caught:
        solve(
            None,
            dfx.Heun(),
            error,
            quadrature,
            terms=sde(row_noise, ROWS),
            y0=jnp.asarray(BATCH),
        )
    assert any("without `batch_axis`" in note for note in caught.value.__notes__)


@pytest.mark.slow
def test_a_split_equation_has_the_slope_of_the_sum():
    fast = lambda t, y, args: -args["rate"] * y
    slow = lambda t, y, args: jnp.stack([jnp.sin(y[1]), t * y[0]])
    both = lambda t, y, args: fast(t, y, args) + slow(t, y, args)
    split = dfx.MultiTerm(dfx.ODETerm(fast), dfx.ODETerm(slow))
    options = dict(stepsize_controller=pid(1e-8), dt0=0.01)
    penalties = [
        solve(None, solver, tn.TotalDerivative(3), quadrature, terms=terms, **options).stats[
            "penalty"
        ]
        for terms, solver, quadrature in [
            (dfx.ODETerm(both), dfx.Tsit5(), tn.Augmented()),
            (split, dfx.KenCarp4(), tn.Sampled(points=100)),
            (split, dfx.Tsit5(), tn.Augmented()),
        ]
    ]
    np.testing.assert_allclose(penalties[1:], penalties[0], rtol=2e-3)
    sol = solve(None, dfx.Tsit5(), terms=split, **options)
    assert sol.stats["nfe_exact"] is True


UNSAFE = dfx.UnsafeBrownianPath((2,), KEY)
REFUSED = {
    "no drift": (
        dict(terms=dfx.ControlTerm(additive, PATH), regularizer=tn.TotalDerivative(2)),
        r"`VirtualBrownianTree` drives has none.*MultiTerm.*DiffusionNorm.*ErrorEstimate",
    ),
    "to_ode": (
        dict(terms=dfx.ControlTerm(additive, PATH).to_ode(), regularizer=tn.KineticEnergy()),
        r"`VirtualBrownianTree` drives has none.*MultiTerm",
    ),
    "ExpectedNFE": (
        dict(regularizer=tn.ExpectedNFE(dfx.Dopri5(), 1e-3, 1e-3)),
        r"`ExpectedNFE` is not defined for stochastic equations.*ErrorEstimate",
    ),
    "Stiffness": (
        dict(regularizer=tn.Stiffness(1e-3, 1e-3), quadrature=tn.AcceptedSteps()),
        r"`Stiffness` is not defined for stochastic equations.*ErrorEstimate",
    ),
    "tuple": (
        dict(terms=(dfx.ODETerm(decay), dfx.ODETerm(decay)), regularizer=tn.KineticEnergy()),
        r"got `tuple`.*as one `ODETerm`",
    ),
    "another path": (
        dict(
            terms=sde(additive, UNSAFE),
            solver=dfx.Heun(),
            regularizer=tn.ErrorEstimate(1e-3, 1e-3),
            adjoint=dfx.ForwardMode(),
        ),
        r"`UnsafeBrownianPath` draws another one; use `diffrax\.VirtualBrownianTree`",
    ),
    "no noise": (
        dict(terms=dfx.ODETerm(decay), solver=dfx.Heun(), regularizer=tn.DiffusionNorm()),
        r"`DiffusionNorm` needs a stochastic equation",
    ),
    "no estimate": (
        dict(
            solver=dfx.GeneralShARK(),
            regularizer=tn.ErrorEstimate(1e-3, 1e-3),
            quadrature=tn.AcceptedSteps(),
        ),
        r"`GeneralShARK` has none; use a solver",
    ),
    "Backward": (
        dict(regularizer=tn.KineticEnergy(), quadrature=tn.Backward()),
        r"`quadrature=Backward\(\)`.*got a `MultiTerm`.*`Sampled\(\)`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_undefined_is_refused_with_an_alternative(name):
    options, message = REFUSED[name]
    options = {"solver": dfx.ShARK(), "quadrature": tn.Sampled(), "dt0": 1 / 8} | options
    with pytest.raises((TypeError, ValueError), match=message):
        solve(additive, **options)


@pytest.mark.slow
def test_steps_of_a_path_that_cannot_be_repeated():
    """Slopes and steps need nothing but the solve itself."""
    options = dict(terms=sde(additive, UNSAFE), adjoint=dfx.ForwardMode(), dt0=1 / 8)
    error = tn.ErrorEstimate(1e-3, 1e-3)
    for regularizer, quadrature in ((SLOPES, tn.Sampled()), (error, tn.AcceptedSteps())):
        sol = solve(None, dfx.Heun(), regularizer, quadrature, **options)
        assert all(x > 0 for x in jax.tree.leaves(sol.stats["penalty"]))
