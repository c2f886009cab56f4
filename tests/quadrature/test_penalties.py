"""Values of penalties: every regularizer, quadrature and adjoint against the definition."""

import functools
from collections.abc import Callable

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest
import scipy.integrate

import taynode as tn

from . import reference as ref
from .reference import ARGS, close, FIELD, KEY, LENGTH, NUM_ROWS, T0, T1, Y0


# Relative errors that are allowed. In double precision the tolerance of the solver is 1e-10; the
# third derivative has about a hundred times the error of the state, and states at sampled times
# come from dense output. In single precision steps are fixed and small.
RTOL = {"float64": 3e-8, "float32": 1e-5}


@functools.cache
def exact_penalty(name):
    """The integral of a rate without noise along the paths of all rows."""
    return reference_of(name)(ref.GAUSS, ref.GAUSS_WEIGHTS, jnp.zeros_like(Y0))


@functools.cache
def reference_of(name):
    return jax.jit(
        lambda fractions, weights, noise: ref.penalty(
            ref.RATES[name], FIELD, ARGS, Y0, T0, T1, noise, fractions, weights
        )
    )


def expected(name, quadrature, seen, num_rows):
    """The penalty by definition, given the noise and the times that a solve has used."""
    noise = jnp.asarray(ref.seen_noise(seen, num_rows) if "noise" in seen else jnp.zeros((3, 3)))
    if quadrature == "augmented":
        return reference_of(name)(ref.GAUSS, ref.GAUSS_WEIGHTS, noise.astype(float))
    points = ref.QUADRATURES[quadrature].points
    fractions = ref.seen_fractions(seen, num_rows, points)
    assert np.all(np.floor(fractions * points).T == np.arange(points))
    # As many points as Gauss quadrature has, some of them without weight, need no other program.
    none = len(ref.GAUSS) - points
    fractions = jnp.pad(fractions.astype(float), ((0, none), (0, 0)))
    weights = jnp.pad(jnp.full(points, 1 / points), (0, none))
    return reference_of(name)(fractions, weights, noise.astype(float))


def witnesses(quadrature, names):
    points = getattr(ref.QUADRATURES[quadrature], "points", 1)
    return {name: ref.Witness(ref.REGULARIZERS[name], points) for name in names}


def in_precision(tree, dtype):
    return jtu.tree_map(lambda x: jnp.asarray(x, dtype), tree)


def solve_in(quadrature, dtype, names, adjoint, y0=Y0, key=KEY):
    field, args, y0, t0, t1 = in_precision((FIELD, ARGS, y0, T0, T1), dtype)
    options = {}
    if dtype == "float32":
        options = {"dt0": jnp.float32(0.02), "stepsize_controller": dfx.ConstantStepSize()}
    tol = 1e-10 if dtype == "float64" else 1e-5
    return ref.solve(
        witnesses(quadrature, names),
        ref.QUADRATURES[quadrature],
        field=field,
        args=args,
        y0=y0,
        t0=t0,
        t1=t1,
        tol=tol,
        key=key,
        adjoint=ref.adjoints(tol)[adjoint],
        **options,
    )


def joint(quadrature, dtype, names, adjoint):
    """A batch in one solve; its penalties and the number of rows in a state."""
    stats = eqx.filter_jit(solve_in)(quadrature, dtype, names, adjoint).stats
    return stats, stats["penalty"], NUM_ROWS


def per_sample(quadrature, dtype, names, adjoint):
    """A solve for each row, by `vmap`; penalties are averaged, what was seen is put together."""
    sample = lambda y0, key: solve_in(quadrature, dtype, names, adjoint, y0, key).stats
    stats = jax.jit(jax.vmap(sample))(Y0[:, None], jr.split(KEY, NUM_ROWS))
    together = {
        name: {k: jnp.mean(x, 0) if k == "charge" else jnp.sum(x, 0) for k, x in seen.items()}
        for name, seen in stats["penalty"].items()
    }
    return stats, together, 1


BATCHES = {"joint": joint, "vmap": per_sample}


def check_values(batch, quadrature, dtype, names, adjoint="recursive"):
    stats, penalties, num_rows = BATCHES[batch](quadrature, dtype, names, adjoint)
    known = quadrature != "backward"
    assert np.all(np.asarray(stats["penalty_known"]) == known)
    for name in names:
        charge = penalties[name]["charge"]
        assert charge.dtype == dtype
        if known:
            value = expected(name, quadrature, penalties[name], num_rows)
            close(charge, value, RTOL[dtype], message=name)
        else:
            assert np.isnan(charge)


def test_the_reference_agrees_with_scipy():
    def slope(t, flat):
        return np.asarray(FIELD(t, flat.reshape(Y0.shape), ARGS)).ravel()

    times = T0 + LENGTH * np.asarray(ref.GAUSS)[:, 0]
    path = scipy.integrate.solve_ivp(
        slope, (T0, T1), np.ravel(Y0), "DOP853", times, rtol=1e-12, atol=1e-12
    )
    path = path.y.T.reshape(-1, *Y0.shape)
    rates = [
        float(ref.RATES["r3"](FIELD, t, y, ARGS, None)) for t, y in zip(times, path, strict=True)
    ]
    close(exact_penalty("r3"), LENGTH * np.dot(ref.GAUSS_WEIGHTS, rates), 1e-9)


# --- the product


@pytest.mark.parametrize("quadrature", ref.QUADRATURES)
def test_every_regularizer_with_every_quadrature(quadrature):
    check_values("joint", quadrature, "float64", tuple(ref.REGULARIZERS))


@pytest.mark.slow
@pytest.mark.parametrize("quadrature", ["augmented", "rows"])
def test_single_precision_is_as_exact_as_it_can_be(quadrature):
    check_values("joint", quadrature, "float32", ("r3", "rnode"))


# Joint batches are in `test_gradients.py`, and what is missing from the product is below.
# With `rows`, `direct` and `forward` failed: diffrax takes a wrapped solver for a Runge-Kutta
# method, and sets a field that it did not have.
@pytest.mark.parametrize(
    ("quadrature", "adjoint"),
    [
        ("augmented", "backsolve"),
        ("rows", "direct"),
        pytest.param("sampled", "recursive", marks=pytest.mark.slow),
        pytest.param("rows", "forward", marks=pytest.mark.slow),
        # Its gradients under `vmap` are part of `test_same_as_diffrax.py`.
        pytest.param("backward", "recursive", marks=pytest.mark.slow),
    ],
)
def test_samples_under_vmap(quadrature, adjoint):
    check_values("vmap", quadrature, "float64", ("r2",), adjoint)


# Nothing that depends on the precision depends on `vmap`.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch", "dtype"), [("joint", "float64"), ("joint", "float32"), ("vmap", "float64")]
)
@pytest.mark.parametrize(("quadrature", "adjoint"), ref.ALLOWED)
def test_the_full_product(quadrature, adjoint, batch, dtype):
    check_values(batch, quadrature, dtype, tuple(ref.REGULARIZERS), adjoint)


@pytest.mark.parametrize(
    ("quadrature", "rtol"), [(tn.Augmented(), 1e-8), (tn.Sampled(256, batch_axis=0), 1e-3)]
)
def test_backward_in_time_the_penalty_is_that_of_the_path_and_without_time_it_is_zero(
    quadrature, rtol
):
    solve = eqx.filter_jit(
        lambda t0, t1: ref.solve(tn.TotalDerivative(2), quadrature, t0=t0, t1=t1, dt0=(t1 - t0) / 9)
    )
    solved = solve(jnp.array(T1), jnp.array(T0))
    value = jax.jit(lambda: ref.penalty(ref.RATES["r2"], FIELD, ARGS, Y0, T1, T0))()
    assert value > 0
    close(solved.stats["penalty"], value, rtol)
    nothing = solve(jnp.array(T0), jnp.array(T0))
    assert nothing.stats["penalty"] == 0
    close(nothing.ys[0], Y0, 0)


@pytest.mark.slow
def test_implicit_solvers():
    solved = ref.solve(
        tn.TotalDerivative(2), tn.Augmented(), solver=dfx.Kvaerno5(), tol=1e-8, max_steps=256
    )
    close(solved.stats["penalty"], exact_penalty("r2"), 1e-6)


def test_calling_diffrax_oneself_gives_the_same_penalty():
    controller = dfx.PIDController(rtol=1e-10, atol=1e-10, norm=tn.StateNorm())
    solved = dfx.diffeqsolve(
        tn.regularized(dfx.ODETerm(FIELD), tn.TotalDerivative(2)),
        dfx.Tsit5(),
        T0,
        T1,
        0.1,
        (Y0, 0.0),
        ARGS,
        stepsize_controller=controller,
    )
    assert solved.ys is not None
    close(solved.ys[1][0], exact_penalty("r2"), 1e-8)


# --- pytrees of regularizers


def test_a_pytree_of_regularizers_gives_that_pytree_of_penalties():
    names = {"a": ("kinetic", [None]), "b": "r2"}
    regularizer = jtu.tree_map(ref.REGULARIZERS.get, names)
    penalties = ref.solve(regularizer, tn.Augmented()).stats["penalty"]
    assert jtu.tree_structure(penalties) == jtu.tree_structure(names)
    close(penalties["a"][0], exact_penalty("kinetic"), 1e-8)
    close(penalties["b"], exact_penalty("r2"), 1e-8)


def products_in_compiled_rate(regularizer):
    """Matrix products in one evaluation of state and penalty, after XLA."""
    term = tn.regularized(dfx.ODETerm(FIELD), regularizer)
    evaluate = lambda t, y, args: term.vector_field(t, (y, None), args)
    text = jax.jit(evaluate).lower(T0, Y0, ARGS).compile().as_text()
    return text.count(" dot(")


def test_several_regularizers_share_their_matrix_products():
    several = {name: ref.REGULARIZERS[name] for name in ("r2", "r3", "kinetic")}
    r3 = products_in_compiled_rate(ref.REGULARIZERS["r3"])
    assert r3 == 3
    assert products_in_compiled_rate(several) == r3


# --- regularizers of one's own


class Jerk(tn.AbstractRegularizer):
    def rate(self, vector_field, t, y, args, state):
        dy, _, d3y = tn.solution_derivatives(vector_field, t, y, args, order=3)
        return dy, jnp.max(jnp.abs(d3y))


def parabola(t, y, args):
    """The first column has the third derivative 2 c, where c is the second column."""
    return jnp.stack([y[:, 1] * t**2, jnp.zeros_like(y[:, 1])], axis=1)


JERKY = jnp.array([[1.0, 0.5], [0.0, 2.0], [3.0, 1.0]])


@pytest.mark.parametrize(
    ("quadrature", "value"),
    [
        (tn.Augmented(), 4.0 * LENGTH),
        pytest.param(tn.Sampled(points=3), 4.0 * LENGTH, marks=pytest.mark.slow),
        # Each row is a batch of its own.
        (tn.Sampled(points=3, batch_axis=0), (1.0 + 4.0 + 2.0) / 3 * LENGTH),
        (tn.Backward(), np.nan),
    ],
)
def test_five_lines_make_a_regularizer(quadrature, value):
    solved = ref.solve(Jerk(), quadrature, field=parabola, y0=JERKY, args=None)
    close(solved.stats["penalty"], value, 1e-12)


class Hooked(tn.AbstractRegularizer):
    """Charges what `init` was given, and divides by the length of the interval."""

    scale: float

    def init(self, y0, args, *, key=None):
        return {"noise": jr.normal(key, ()), "drive": args["drive"], "columns": 1.0 * y0.shape[1]}

    def rate(self, vector_field, t, y, args, state):
        charge = {
            "noise": state["noise"] ** 2,
            "drive": state["drive"],
            "columns": state["columns"] + 2 * t,
        }
        return vector_field(t, y, args), charge

    def finalize(self, integral, t0, t1):
        return jtu.tree_map(lambda x: self.scale * x / (t1 - t0), integral)


@pytest.mark.slow
@pytest.mark.parametrize("quadrature", [tn.Augmented(), tn.Sampled(64, batch_axis=0)])
def test_init_and_finalize_are_called(quadrature):
    penalty = ref.solve(Hooked(2.0), quadrature).stats["penalty"]
    assert penalty["noise"] > 0
    close(penalty["drive"], 2 * ARGS["drive"], 1e-12)
    close(penalty["columns"], 2 * (3 + T0 + T1), 1e-3)


class Constant(tn.AbstractRegularizer):
    """Charges the same at all times, as some kind of number."""

    kind: Callable = eqx.field(static=True)

    def rate(self, vector_field, t, y, args, state):
        return vector_field(t, y, args), self.kind(2)


# `Augmented` failed for rates of other types than the state's, and `Sampled` gave 0 for integers.
@pytest.mark.parametrize("quadrature", [tn.Augmented(), tn.Sampled(points=2)])
def test_rates_may_be_any_kind_of_number(quadrature):
    kinds = {kind.__name__: Constant(kind) for kind in (float, jnp.int32, jnp.float32)}
    fixed = {"solver": dfx.Euler(), "stepsize_controller": dfx.ConstantStepSize()}
    penalties = ref.solve(kinds, quadrature, dt0=0.1, **fixed).stats["penalty"]
    for kind, penalty in penalties.items():
        close(penalty, 2 * LENGTH, 1e-6, message=kind)


# A real penalty beside a complex state stopped diffrax, which wants one type of numbers.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Complex dtype support in Diffrax")
@pytest.mark.parametrize("name", ["augmented", "rows"])
def test_complex_states(name):
    solved = ref.solve(
        tn.TotalDerivative(2),
        ref.QUADRATURES[name],
        field=lambda t, y, a: a * y,
        args=jnp.array(0.7j),
        y0=jnp.array([[1.0 + 0.0j], [0.0 + 0.5j]]),
    )
    # |z''|^2 = 0.7^4 |z0|^2, at all times.
    assert not jnp.iscomplexobj(solved.stats["penalty"])
    close(solved.stats["penalty"], 0.7**4 * (1 + 0.25) / 2 * LENGTH, 1e-9)


# Choosing the first step failed for anything that is no number, such as a network's activation.
def test_args_may_hold_functions():
    field = lambda t, y, args: args[1](args[0] * y)
    solved = ref.solve(tn.KineticEnergy(), tn.Augmented(), field=field, args=(0.5, jnp.tanh))
    assert solved.stats["penalty"] > 0


# It failed if the first step was to be chosen, which turned the number into an array.
def test_backward_takes_python_numbers_as_args():
    solved = ref.solve(tn.KineticEnergy(), tn.Backward(), field=lambda t, y, a: a * y, args=0.5)
    assert np.isnan(solved.stats["penalty"])


def test_backward_refuses_implicit_solvers():
    with pytest.raises(ValueError, match="Backward"):
        ref.solve(tn.KineticEnergy(), tn.Backward(), solver=dfx.Kvaerno3(), tol=1e-5)


def test_a_norm_of_augmented_states_refuses_plain_ones():
    # BUG, fixed: of a plain state of two elements it saw the first.
    for state in (jnp.array([3.0, 100.0]), jnp.ones(3)):
        with pytest.raises(TypeError, match=r"`tn.diffeqsolve` needs no special norm"):
            tn.StateNorm()(state)
