"""`python -m benchmarks.expected_nfe RUN...`: estimated against counted evaluations, as a figure.

Each RUN is the directory of a run of `taynode train`. Its model, and that model before training,
are evaluated on test samples, one by one, with three solvers at two tolerances in float64. Prints a
table and the median ratio of estimate and count with its spread, and needs matplotlib. Takes a
minute or two per run.
"""

import pathlib
import sys
from typing import NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.tree_util as jtu
import numpy as np

import taynode as tn
from taynode.lab import load
from taynode.lab.training.keys import Keys
from taynode.lab.training.running import new_model
from taynode.lab.training.step import make_evaluation
from taynode.models import Solve


FIGURE = pathlib.Path(__file__).parent / "figures" / "expected_nfe.png"
SOLVERS = {"bosh3": dfx.Bosh3(), "dopri5": dfx.Dopri5(), "tsit5": dfx.Tsit5()}
TOLERANCES = (1e-5, 1.4e-8)
NUM_SAMPLES, NUM_TIMES = 32, 20
# With fewer steps, the first and the last one are a large part of all.
MIN_STEPS = 5
TICKS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
COLORS = {"untrained": "C7", "unregularized": "C0", "regularized": "C1"}
MARKERS = dict(zip(SOLVERS, "os^", strict=True))


class Point(NamedTuple):
    """Means over samples of one model with one solver and tolerance."""

    task: str
    model: str
    solver: str
    tolerance: float
    num_steps: float
    counted: float
    estimated: float

    @property
    def ratio(self) -> float:
        """The estimate divided by the count."""
        return self.estimated / self.counted


def measure(path: str) -> list[Point]:
    """The points of a run: its model before and after training."""
    run = load(path, precision="float64")
    trained = "unregularized" if run.config.regularizer.name == "none" else "regularized"
    cast = lambda x: x.astype(float) if eqx.is_inexact_array(x) else x
    untrained = jtu.tree_map(cast, new_model(run.config, run.task, Keys(run.config.seed).model))
    batch = jtu.tree_map(lambda x: x[:NUM_SAMPLES], run.data.test)
    points = []
    for name, solver in SOLVERS.items():

        @eqx.filter_jit
        def evaluate(model, tolerance, solver=solver):
            solve = Solve(
                solver=solver,
                stepsize_controller=dfx.PIDController(rtol=tolerance, atol=tolerance),
                regularizer=tn.ExpectedNFE(solver, tolerance, tolerance, where=run.task.penalized),
                quadrature=tn.Sampled(points=NUM_TIMES),
            )
            return make_evaluation(run.task, solve)(model, batch, jax.random.key(0))

        for kind, model in {"untrained": untrained, trained: run.model}.items():
            for tolerance in TOLERANCES:
                samples, estimates = evaluate(model, np.asarray(tolerance))
                means = (float(np.mean(x)) for x in (samples.num_steps, samples.nfe, estimates))
                points.append(Point(run.config.task, kind, name, tolerance, *means))
    return points


def summary(points: list[Point]) -> str:
    """The median and the spread of the ratio."""
    ratios = [p.ratio for p in points if p.num_steps > MIN_STEPS]
    low, median, high = np.quantile(ratios, (0.05, 0.5, 0.95))
    within = np.mean(np.abs(np.array(ratios) - 1) <= 0.2)
    return (
        f"Estimate / count over {len(ratios)} settings with more than {MIN_STEPS} steps: median "
        f"{median:.2f}, 5 to 95 % {low:.2f} to {high:.2f}, within 20 %: {100 * within:.0f} %."
    )


def draw(points: list[Point]) -> None:
    """A panel for each task."""
    import matplotlib.pyplot as plt  # pyright: ignore[reportMissingImports]
    from matplotlib.ticker import NullFormatter  # pyright: ignore[reportMissingImports]

    tasks = list(dict.fromkeys(p.task for p in points))
    size = 3.3 * len(tasks), 3.6
    figure, axes = plt.subplots(1, len(tasks), figsize=size, layout="constrained", squeeze=False)
    for axis, task in zip(axes[0], tasks, strict=True):
        for p in (p for p in points if p.task == task):
            filled = COLORS[p.model] if p.tolerance == TOLERANCES[0] else "none"
            style = {"edgecolors": COLORS[p.model], "facecolors": filled, "s": 28}
            axis.scatter(p.counted, p.estimated, marker=MARKERS[p.solver], **style)
        values = [x for p in points if p.task == task for x in (p.counted, p.estimated)]
        ends = np.array([0.8 * min(values), 1.25 * max(values)])
        axis.plot(ends, ends, color="0.4", linewidth=1)
        axis.fill_between(ends, 0.8 * ends, 1.2 * ends, color="0.9", zorder=0)
        axis.set(title=task, xscale="log", yscale="log", xlabel="evaluations counted")
        for part in (axis.xaxis, axis.yaxis):
            part.set_ticks(TICKS, list(map(str, TICKS)))
            part.set_minor_formatter(NullFormatter())
        axis.set(xlim=ends, ylim=ends)
    axes[0, 0].set_ylabel("evaluations estimated")
    labels = [(name, "o", color) for name, color in COLORS.items()]
    labels += [(name, marker, "k") for name, marker in MARKERS.items()]
    for name, marker, color in labels:
        axes[0, 0].scatter([], [], marker=marker, color=color, label=name)
    open_marker = {"edgecolors": "k", "facecolors": "none", "label": f"at {TOLERANCES[1]:g}"}
    axes[0, 0].scatter([], [], marker="o", **open_marker)
    axes[0, 0].legend(fontsize=7)
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=150)


def main(paths: list[str]) -> None:
    """Print a table, and draw the figure."""
    if not paths:
        sys.exit("Pass the directories of runs: `python -m benchmarks.expected_nfe RUN...`.")
    jax.config.update("jax_enable_x64", True)
    # Runs of one seed share the model before training.
    points = list(dict.fromkeys(point for path in paths for point in measure(path)))
    print("| task | model | solver | tolerance | steps | counted | estimated | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for p in points:
        numbers = f"{p.num_steps:.1f} | {p.counted:.1f} | {p.estimated:.1f} | {p.ratio:.2f}"
        print(f"| {p.task} | {p.model} | {p.solver} | {p.tolerance:g} | {numbers} |")
    print("\n" + summary(points))
    draw(points)


if __name__ == "__main__":
    main(sys.argv[1:])
