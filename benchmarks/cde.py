"""`python -m benchmarks.cde SEED...`: what a neural CDE spends evaluations on, and what helps.

The example of diffrax's documentation, spirals of 100 irregular times, with a small model, without
and with noise. Each row is a way to solve the equation, with the smallest number of evaluations
over many tolerances whose true error, the root mean square at the end, is below a bound. The
reference is a tight solve that knows the knots, with the control of the row. So rows with another
control solve another equation; the second table has their accuracy after training, and that with
the penalty R_2. Numbers are means over seeds with standard deviations, and geometric means of
errors. A dash: not on all seeds. A seed takes about five minutes on one core. Needs SciPy.
"""

import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from scipy.interpolate import CubicSpline, make_lsq_spline, PPoly

import taynode as tn
from taynode.lab.data import spirals


TOLERANCES = 10.0 ** -np.arange(1.0, 6.25, 0.5)
EXAMPLE = 1e-3  # the tolerance of the example
BOUNDS = 1e-1, 1e-2, 1e-3
NUM_PIECES, WINDOW = 12, 5
NOISES = 0.0, 0.1
NUM_TRAIN, NUM_TEST, BATCH, NUM_STEPS = 256, 16, 16, 200


# --- controls


def stacked(paths: list[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *paths)


def hermite(times, values):
    """Cubic with backward differences: its second derivative jumps at each knot."""
    control = lambda x: dfx.CubicInterpolation(times, dfx.backward_hermite_coefficients(times, x))
    return jax.vmap(control)(values)


def linear(times, values):
    return jax.vmap(lambda x: dfx.LinearInterpolation(times, x))(values)


def cubic(knots, coefficients) -> Any:
    d, c, b, a = map(jnp.asarray, coefficients)
    return dfx.CubicInterpolation(jnp.asarray(knots), (d, c, b, a))


def natural(times, values):
    """A cubic spline: its third derivative jumps at each knot. It looks into the future."""
    spline = lambda x: cubic(times, CubicSpline(times, x, bc_type="natural").c)
    return stacked([spline(x) for x in np.asarray(values)])


def coarse(times, values):
    """A least-squares spline with few pieces, which leaves most of the noise out."""
    inner = np.linspace(0.0, 1.0, NUM_PIECES + 1)[1:-1]
    knots = np.concatenate([[0.0] * 4, inner, [1.0] * 4])

    def control(x):
        spline = make_lsq_spline(times, x, knots)
        pieces = [PPoly.from_spline((spline.t, c, 3)) for c in spline.c.T]
        return cubic(knots[3:-3], np.stack([p.c[:, 3:-3] for p in pieces], axis=-1))

    return stacked([control(x) for x in np.asarray(values)])


class LogODE(eqx.Module):
    """The log-ODE method: in each window, dy/dt follows from the log-signature of the series there.

    At depth 1 it is the increment, as for an interpolation of every fifth value. Depth 2 adds the
    areas $A_{ij}$, which multiply the Lie brackets $[f_i, f_j] = Df_j f_i - Df_i f_j$.
    """

    ts: Any
    start: Any
    increments: Any
    areas: Any
    depth: int = eqx.field(static=True)

    def slope(self, matrix, t, y):
        i = jnp.clip(jnp.searchsorted(self.ts, t) - 1, 0, len(self.ts) - 2)
        f, push = jax.linearize(matrix, y)
        slope = f @ self.increments[i]
        if self.depth == 2:
            # As the areas are antisymmetric, the sum over i < j is one over all j of Df_j (f A)_j.
            pushed = jax.vmap(push, in_axes=1)(f @ self.areas[i])
            slope = slope + jnp.einsum("jhj->h", pushed)
        return slope / (self.ts[i + 1] - self.ts[i])


def windows(times, values, depth):
    ends = [*range(0, len(times) - 1, WINDOW), len(times) - 1]

    def area(steps):
        before = np.cumsum(steps, axis=0) - steps
        return (before.T @ steps - steps.T @ before) / 2

    def control(x):
        steps = [np.diff(x[a : b + 1], axis=0) for a, b in itertools.pairwise(ends)]
        increments, areas = (np.stack([g(s) for s in steps]) for g in (lambda s: s.sum(0), area))
        arrays = map(jnp.asarray, (np.asarray(times)[ends], x[0], increments, areas))
        return LogODE(*arrays, depth)  # pyright: ignore[reportCallIssue]

    return stacked([control(x) for x in np.asarray(values)])


# --- ways to solve


class Way(NamedTuple):
    """A way to solve; `knots` is what the steps know of them: steps, jumps, grid or nothing."""

    title: str
    control: Callable[..., Any]
    knots: str | None = None
    increments: bool = False
    solver: Any = dfx.Tsit5()
    products: int = 1  # of the network or its derivative, per evaluation


HERE = "cubic Hermite"
WAYS = [
    Way(f"{HERE}: the example", hermite),
    Way("linear", linear),
    Way(f"{HERE}, steps end at knots", hermite, "step_ts"),
    Way("linear, jumps at knots", linear, "jump_ts"),
    Way("linear, increments, steps end at knots", linear, "step_ts", increments=True),
    Way("linear, increments, Bosh3 from knot to knot", linear, "grid", True, dfx.Bosh3()),
    Way("linear, increments, Heun from knot to knot", linear, "grid", True, dfx.Heun()),
    Way("log-ODE of depth 1", functools.partial(windows, depth=1), "jump_ts", solver=dfx.Bosh3()),
    Way(
        "log-ODE of depth 2",
        functools.partial(windows, depth=2),
        "jump_ts",
        solver=dfx.Bosh3(),
        products=4,
    ),
    Way("natural spline", natural),
    Way(f"spline of {NUM_PIECES} pieces", coarse),
]


def solve(model, control, way, tolerance, *, regularizer=None, key=None):
    """One series."""
    matrix = model.vector_field.matrix
    if isinstance(control, LogODE):
        term = dfx.ODETerm(lambda t, y, args: control.slope(matrix, t, y))
        start = control.start
    else:
        term = dfx.ControlTerm(lambda t, y, args: matrix(y), control)
        start = control.evaluate(control.t0)
    if isinstance(term, dfx.ControlTerm) and not way.increments:
        term = term.to_ode()
    controller = dfx.PIDController(rtol=tolerance, atol=1e-3 * tolerance)
    if way.knots == "grid":
        controller = dfx.StepTo(control.ts)
    elif way.knots is not None:
        times = {way.knots: control.ts[1:-1]}
        controller = dfx.ClipStepSizeController(controller, **times)
    return tn.diffeqsolve(
        term,
        way.solver,
        0.0,
        1.0,
        # Only ordinary equations have a choice of the first step.
        0.01 if way.increments and way.knots != "grid" else None,
        model.initial(start),
        stepsize_controller=controller,
        regularizer=regularizer,
        key=key,
        throw=False,
    )


def ends(model, controls, way, tolerance):
    """States at the end, evaluations and rejected steps of each series."""
    solution = jax.vmap(lambda control: solve(model, control, way, tolerance))(controls)
    stats = solution.stats
    share = stats["num_rejected_steps"] / stats["num_steps"]
    return solution.ys[:, -1], stats["nfe"], share


@functools.cache
def compiled(way: int):
    return eqx.filter_jit(functools.partial(ends, way=WAYS[way]))


TIGHT = Way("reference", hermite, "jump_ts", solver=dfx.Dopri8())
reference = eqx.filter_jit(lambda model, controls: ends(model, controls, TIGHT, 1e-8)[0])


def rows_of(model, way: int, times, values) -> np.ndarray:
    """Evaluations, errors and the share of rejected steps for each tolerance."""
    controls = WAYS[way].control(times, values)
    # The log-ODE method approximates the equation of the linear control.
    same = linear(times, values) if isinstance(controls, LogODE) else controls
    exact = reference(model, same)
    rows = []
    for tolerance in TOLERANCES:
        y1, nfe, share = compiled(way)(model, controls, tolerance=tolerance)
        rows.append([np.mean(nfe), np.sqrt(np.mean((y1 - exact) ** 2)), np.mean(share)])
        if WAYS[way].knots == "grid":
            break
    return np.array(rows)


def cheapest(rows: np.ndarray, bound: float) -> float:
    """The smallest number of evaluations with an error below a bound; infinite if there is none."""
    return float(np.min(rows[rows[:, 1] <= bound, 0], initial=np.inf))


class Found(NamedTuple):
    """What a way to solve takes with one seed, at the tolerance of the example and over all."""

    nfe: float
    error: float
    rejected: float
    least: tuple[float, ...]


def found_by(model, way: int, times, values) -> Found:
    rows = rows_of(model, way, times, values)
    own = 0 if len(rows) == 1 else int(np.argmin(np.abs(TOLERANCES - EXAMPLE)))
    nfe, error, rejected = map(float, rows[own])
    return Found(nfe, error, rejected, tuple(cheapest(rows, bound) for bound in BOUNDS))


# --- over seeds


def spread(values: Sequence[float]) -> str:
    """The mean and the standard deviation; a dash unless all are finite."""
    if not np.all(np.isfinite(values)):
        return "-"
    around = f" ± {np.std(values, ddof=1):.0f}" if len(values) > 1 else ""
    return f"{np.mean(values):.0f}{around}"


def cells(found: Sequence[Found]) -> str:
    """Evaluations and errors at the tolerance of the example, and the fewest for each bound."""
    error = np.exp(np.mean(np.log([x.error for x in found])))
    rejected = np.mean([x.rejected for x in found])
    least = [spread(x) for x in zip(*(x.least for x in found), strict=True)]
    return f"{spread([x.nfe for x in found])}, {error:.1e}, {rejected:.0%} | {' | '.join(least)}"


# --- training


def train(control, knots, noise, share, seed) -> tuple[Any, float]:
    """A model that is trained for a short time, and its accuracy on new series.

    The weight of the penalty is such that it begins as `share`, next to a loss of about 0.7.
    """
    way = Way("training", control, knots)
    series = spirals(NUM_TRAIN, seed=10 * seed + 1, noise=noise)
    controls = control(jnp.asarray(series.times, float), jnp.asarray(series.values, float))
    model = new_model(seed)
    optimizer = optax.adam(1e-2)
    opt_state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    regularizer = tn.TotalDerivative(2) if share else None

    def logits(model, controls, keys):
        one = lambda c, k: solve(model, c, way, EXAMPLE, regularizer=regularizer, key=k)
        solution = jax.vmap(one)(controls, keys)
        penalty = jnp.mean(solution.stats["penalty"]) if share else 0.0
        return model.head(solution.ys[:, -1]), penalty

    evaluate = eqx.filter_jit(logits)
    _, first = evaluate(model, controls, jr.split(jr.key(10 * seed + 5), NUM_TRAIN))
    weight = share / first if share else 0.0

    @eqx.filter_jit
    def step(model, opt_state, key):
        batch_key, key = jr.split(key)
        rows = jr.choice(batch_key, NUM_TRAIN, (BATCH,), replace=False)
        batch, labels = jax.tree.map(lambda x: x[rows], (controls, jnp.asarray(series.labels)))

        def loss(model):
            scores, penalty = logits(model, batch, jr.split(key, BATCH))
            entropy = optax.softmax_cross_entropy_with_integer_labels(scores, labels)
            return jnp.mean(entropy) + weight * penalty

        updates, new_state = optimizer.update(eqx.filter_grad(loss)(model), opt_state)
        return eqx.apply_updates(model, updates), new_state

    for key in jr.split(jr.key(10 * seed + 2), NUM_STEPS):
        model, opt_state = step(model, opt_state, key)
    series = spirals(NUM_TRAIN, seed=10 * seed + 3, noise=noise)
    controls = control(jnp.asarray(series.times, float), jnp.asarray(series.values, float))
    scores, _ = evaluate(model, controls, jr.split(jr.key(10 * seed + 4), NUM_TRAIN))
    return model, float(np.mean(np.argmax(scores, axis=-1) == series.labels))


def new_model(seed: int):
    return tn.models.NeuralCDE(3, 8, 32, 2, key=jr.key(10 * seed))


# Controls and knots, and the share of the penalty, in training.
TRAINED = [
    (0, "step_ts", 0.0),
    (0, "step_ts", 0.1),
    (0, "step_ts", 1.0),
    (10, None, 0.0),
    (10, None, 0.1),
    (10, None, 1.0),
]
KINDS = "new", "trained"
# Each trained model, and the ways in which it is solved.
RECIPES = [(n, share, way) for n, _, share in TRAINED for way in ((n, 2) if n == 0 else (n,))]


class Measured(NamedTuple):
    """All of one seed: by kind of model and way; by recipe; and accuracies by recipe."""

    ways: dict[tuple[str, int], Found]
    recipes: dict[tuple[int, float, int], Found]
    accuracies: dict[tuple[int, float, int], float]


def measure(seed: int, noise: float) -> Measured:
    """Train the models of a seed, and solve new series in all ways."""
    series = spirals(NUM_TEST, seed=10 * seed, noise=noise)
    times, values = jnp.asarray(series.times, float), jnp.asarray(series.values, float)
    trained = {
        (number, share): train(WAYS[number].control, knots, noise, share, seed)
        for number, knots, share in TRAINED
    }
    models = dict(zip(KINDS, (new_model(seed), trained[0, 0.0][0]), strict=True))
    return Measured(
        {
            (kind, way): found_by(model, way, times, values)
            for kind, model in models.items()
            for way in range(len(WAYS))
        },
        {x: found_by(trained[x[:2]][0], x[2], times, values) for x in RECIPES},
        {x: trained[x[:2]][1] for x in RECIPES},
    )


def main(seeds: Sequence[int]) -> None:
    """Print both tables for series without and with noise."""
    for noise in NOISES:
        each = [measure(seed, noise) for seed in seeds]
        head = " | ".join(f"for {bound:g}" for bound in BOUNDS)
        print(f"\n### Noise {noise}\n")
        own = "at 1e-3: evaluations, error, rejected"
        print(f"| model | way | {own} | {head} | products |")
        print("|---" * (4 + len(BOUNDS)) + "|")
        for kind, number in each[0].ways:
            way, found = WAYS[number], [x.ways[kind, number] for x in each]
            print(f"| {kind} | {way.title} | {cells(found)} | x {way.products} |")
        print(f"\n| trained with | R_2 at first | accuracy | {own} | {head} |")
        print("|---" * (4 + len(BOUNDS)) + "|")
        for recipe in RECIPES:
            right = np.mean([x.accuracies[recipe] for x in each])
            found = cells([x.recipes[recipe] for x in each])
            title = WAYS[recipe[2]].title
            if recipe[2] != recipe[0]:
                title = f"the same, {title.partition(', ')[2]}"
            print(f"| {title} | {recipe[1]:g} | {right:.1%} | {found} |", flush=True)


if __name__ == "__main__":
    with jax.enable_x64(True):
        main(list(map(int, sys.argv[1:])) or [0])
