"""What regularization adds to a training step: the gradient of a loss through a whole solve."""

import dataclasses
import functools as ft
import statistics
import time
from collections.abc import Callable
from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import optimistix as optx
from rich.console import Console
from rich.progress import Progress

import taynode as tn

from .contenders import by_repeated_jet
from .models import make_field


LEAST_NFE = 44
TOLERANCE = 1e-5
WEIGHT = 0.01
ROUNDS = 5
REPEATS = 3
KEY = jr.key(0)
DISCRETE = dfx.RecursiveCheckpointAdjoint()


@dataclasses.dataclass(frozen=True)
class Setting:
    """How the solve is made; the same for all contenders of a table."""

    name: str
    solver: dfx.AbstractSolver
    dt0: float
    controller: dfx.AbstractStepSizeController
    adjoint: dfx.AbstractAdjoint = DISCRETE

    def arguments(self, field, y0, params):
        """The positional arguments of a solve."""
        return dfx.ODETerm(field), self.solver, 0.0, 1.0, self.dt0, y0, params

    def options(self):
        """The keywords of a solve."""
        return {
            "stepsize_controller": self.controller,
            "adjoint": self.adjoint,
            "max_steps": 64,
        }


ADAPTIVE = Setting(
    "Dopri5, tolerance 1e-5",
    dfx.Dopri5(),
    0.1,
    dfx.PIDController(rtol=TOLERANCE, atol=TOLERANCE),
)
BACKSOLVE = dataclasses.replace(
    ADAPTIVE, name="Dopri5, tolerance 1e-5, BacksolveAdjoint", adjoint=dfx.BacksolveAdjoint()
)


def grid(num_steps: int) -> Setting:
    """RK4 on a fixed grid."""
    name = f"{num_steps} RK4 steps"
    return Setting(name, tn.solvers.RK4(), 1 / num_steps, dfx.ConstantStepSize())


# A solve is a function (setting, field, y0, params) -> (y1, penalty, nfe).


def plain(setting, field, y0, params):
    """No regularizer."""
    sol = tn.diffeqsolve(*setting.arguments(field, y0, params), **setting.options())
    return sol.ys[-1], 0.0, sol.stats["nfe"]


def plain_diffrax(setting, field, y0, params):
    """No regularizer, by diffrax itself."""
    sol = dfx.diffeqsolve(*setting.arguments(field, y0, params), **setting.options())
    return sol.ys[-1], 0.0, -1


def regularized(regularizer, quadrature, setting, field, y0, params):
    """With taynode."""
    sol = tn.diffeqsolve(
        *setting.arguments(field, y0, params),
        **setting.options(),
        regularizer=regularizer,
        quadrature=quadrature,
        key=KEY,
    )
    return sol.ys[-1], sol.stats["penalty"], sol.stats["nfe"]


def jet_by_hand(order, setting, field, y0, params):
    """The augmented system written by hand, with diffrax and jax's jet."""

    def augmented(t, state, params):
        y, _ = state
        derivative = by_repeated_jet(field, jnp.asarray(t), y, params, order)
        return field(t, y, params), jnp.mean(derivative**2)

    options = setting.options()
    if isinstance(setting.controller, dfx.PIDController):
        norm = lambda state: optx.rms_norm(state[0])
        options["stepsize_controller"] = dfx.PIDController(
            rtol=TOLERANCE, atol=TOLERANCE, norm=norm
        )
    arguments = setting.arguments(augmented, (y0, jnp.zeros(())), params)
    state: Any = dfx.diffeqsolve(*arguments, **options).ys
    return state[0][-1], state[1][-1], -1


def contenders(setting: Setting, *, rows: bool) -> dict[str, Callable]:
    """Everything that is measured in a setting, the baseline first."""
    derivatives = {k: tn.TotalDerivative(order=k) for k in (2, 3)}
    rnode = tn.RNODE()
    quadratures = {"Augmented": tn.Augmented(), "Backward": tn.Backward()}
    out = {"unregularized": plain}
    if setting is BACKSOLVE:
        for name, quadrature in quadratures.items():
            for k, regularizer in derivatives.items():
                out[f"R_{k}, {name}"] = ft.partial(regularized, regularizer, quadrature)
        return out
    out["unregularized, diffrax itself"] = plain_diffrax
    sampled = {"Sampled": tn.Sampled()}
    if setting.name in ("2 RK4 steps", "4 RK4 steps"):
        for name, quadrature in {**sampled, "Augmented": tn.Augmented()}.items():
            for k, regularizer in derivatives.items():
                out[f"R_{k}, {name}"] = ft.partial(regularized, regularizer, quadrature)
        return out
    if rows:
        sampled["Sampled(batch_axis=0)"] = tn.Sampled(batch_axis=0)
    for name, quadrature in (sampled | quadratures).items():
        for k, regularizer in derivatives.items():
            out[f"R_{k}, {name}"] = ft.partial(regularized, regularizer, quadrature)
    for k in derivatives:
        out[f"R_{k}, diffrax + jet by hand"] = ft.partial(jet_by_hand, k)
    for name in ("Sampled", "Augmented"):
        out[f"RNODE, {name}"] = ft.partial(regularized, rnode, (sampled | quadratures)[name])
    return out


@dataclasses.dataclass
class Task:
    """A model with its data: the loss of a solve's result."""

    name: str
    field: Callable
    params: Any
    x: Any
    batched: bool  # solved jointly, otherwise sample by sample

    def loss(self, solve, setting, params):
        """A training loss; also the evaluations, the largest of all samples."""
        head, inner = params
        solve = ft.partial(solve, setting, self.field)
        if self.batched:
            y, penalty, nfe = solve(self.x, inner)
        else:
            y, penalty, nfe = jax.vmap(solve, in_axes=(0, None))(self.x, inner)
        logits = jax.nn.sigmoid(y) @ head
        labels = jnp.arange(len(logits)) % logits.shape[-1]
        error = -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(logits)), labels])
        return error + WEIGHT * jnp.mean(penalty), jnp.max(jnp.asarray(nfe))


def mnist_task() -> Task:
    """The paper's classifier, 784-100-784 and a linear layer, batch 100, solved jointly."""
    field, params = make_field((784, 100, 784), jax.nn.sigmoid, activate_input=True)
    head = jr.normal(jr.key(1), (784, 10)) / 28
    return Task("784-100-784, batch 100", field, (head, params), jr.uniform(KEY, (100, 784)), True)


def latent_task() -> Task:
    """Dynamics of a small latent model, 20-50-50-20, batch 50, sample by sample."""
    field, params = make_field((20, 50, 50, 20), jnp.tanh, activate_input=False)
    head = jr.normal(jr.key(1), (20, 10))
    return Task("20-50-50-20, 50 samples", field, (head, params), jr.normal(KEY, (50, 20)), False)


def wild_enough(task: Task) -> Task:
    """Scale the weights until a solve takes as many evaluations as that of a trained model."""
    count = jax.jit(lambda params: task.loss(plain, ADAPTIVE, params)[1])
    head, inner = task.params
    for _ in range(40):
        if count((head, inner)) >= LEAST_NFE:
            return dataclasses.replace(task, params=(head, inner))
        inner = jax.tree.map(lambda w: 1.15 * w, inner)
    raise RuntimeError(f"No scale of the weights gives {LEAST_NFE} evaluations.")


def measure(task: Task, setting: Setting, console: Console) -> str:
    """A table: the time of a gradient relative to the unregularized one."""
    steps, compile_seconds, nfe = {}, {}, 0
    solves = contenders(setting, rows=task.batched)
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task(f"{task.name}, {setting.name}", total=len(solves) * (1 + REPEATS))
        for name, solve in solves.items():
            loss = ft.partial(task.loss, solve, setting)
            start = time.perf_counter()
            step = jax.jit(jax.value_and_grad(loss, has_aux=True)).lower(task.params).compile()
            compile_seconds[name] = time.perf_counter() - start
            steps[name] = lambda step=step: jax.block_until_ready(step(task.params))
            (_, count), _ = steps[name]()
            nfe = max(nfe, int(count))
            progress.advance(bar)
        base, *others = steps
        ratios: dict[str, list[float]] = {name: [] for name in others}
        seconds = []
        for _ in range(REPEATS):
            for name in others:
                pairs = [(_clock(steps[base]), _clock(steps[name])) for _ in range(ROUNDS)]
                seconds += [first for first, _ in pairs]
                ratios[name].append(statistics.median(b / a for a, b in pairs))
                progress.advance(bar)
            progress.advance(bar)
    lines = [
        f"{setting.name}: NFE {nfe}, {1e3 * statistics.median(seconds):.1f} ms unregularized.\n",
        "| | time / unregularized | least, most of three | compile s |",
        "|---|---|---|---|",
    ]
    for name, three in ratios.items():
        lines.append(
            f"| {name} | {statistics.median(three):.2f} | {min(three):.2f}, {max(three):.2f} "
            f"| {compile_seconds[name]:.1f} |"
        )
    return "\n".join(lines)


def _clock(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def sections(console: Console) -> list[str]:
    """All tables."""
    mnist, latent = wild_enough(mnist_task()), wild_enough(latent_task())
    settings = {
        mnist.name: (mnist, [ADAPTIVE, grid(8), grid(4), grid(2), BACKSOLVE]),
        latent.name: (latent, [ADAPTIVE, grid(8)]),
    }
    out = []
    for name, (task, each) in settings.items():
        tables = [measure(task, setting, console) for setting in each]
        out.append(f"#### {name}, float32\n\n" + "\n\n".join(tables))
    return out
