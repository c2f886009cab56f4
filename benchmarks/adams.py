"""`python -m benchmarks.adams`: work and precision of `tn.solvers.Adams`, as a figure.

Against two codes of SciPy: LSODA, which has Adams' methods up to order 12, too, and DOP853, a
Runge-Kutta method of order 8. Evaluations of the vector field are as each code counts them; errors
are at the end, against DOP853 at its tightest tolerance. Takes seconds, and needs matplotlib.
"""

import functools
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate

import taynode as tn


FIGURE = pathlib.Path(__file__).parent / "figures" / "adams.png"
TOLERANCES = 10.0 ** -np.arange(3.0, 11.25, 0.5)
STYLES = {"Adams": ("C0", "o"), "LSODA": ("C1", "s"), "DOP853": ("C2", "^")}


class Problem(NamedTuple):
    """A system with its start and its end."""

    title: str
    field: Callable[..., Any]
    y0: list[float]
    t1: float


def pendulum(t, y, xp=jnp):
    angle, speed = y
    return xp.stack([speed, -0.25 * speed - 9.8 * xp.sin(angle)])


def kepler(t, y, xp=jnp):
    x, z, u, v = y
    cube = xp.hypot(x, z) ** 3
    return xp.stack([u, v, -x / cube, -z / cube])


def lotka_volterra(t, y, xp=jnp):
    prey, predators = y
    return xp.stack([1.5 * prey - prey * predators, prey * predators - 3 * predators])


PROBLEMS = [
    Problem("damped pendulum", pendulum, [np.pi - 0.1, 0.0], 10.0),
    Problem("Kepler orbits, eccentricity 0.3", kepler, [0.7, 0.0, 0.0, (1.3 / 0.7) ** 0.5], 20.0),
    Problem("Lotka-Volterra", lotka_volterra, [10.0, 5.0], 10.0),
]


def by_scipy(problem: Problem, method: str, tolerance: float) -> tuple[int, np.ndarray]:
    """Evaluations and the state at the end."""
    solution = scipy.integrate.solve_ivp(
        functools.partial(problem.field, xp=np),
        (0.0, problem.t1),
        problem.y0,
        method,  # pyright: ignore[reportArgumentType]
        rtol=tolerance,
        atol=tolerance,
    )
    return solution.nfev, solution.y[:, -1]


def adams(problem: Problem) -> Callable[[float], tuple[int, np.ndarray]]:
    """The same for Adams, compiled once for all tolerances."""

    @jax.jit
    def solve(tolerance):
        solution = dfx.diffeqsolve(
            dfx.ODETerm(lambda t, y, args: problem.field(t, y)),
            tn.solvers.Adams().with_tolerances(tolerance, tolerance),
            0.0,
            problem.t1,
            0.01,
            jnp.array(problem.y0),
            stepsize_controller=tn.solvers.AdamsController(
                dfx.PIDController(rtol=tolerance, atol=tolerance)
            ),
        )
        assert solution.ys is not None
        # One at the start and two for each attempt, as the tests make sure.
        return 1 + 2 * solution.stats["num_steps"], solution.ys[-1]

    def run(tolerance):
        evaluations, y1 = solve(tolerance)
        return int(evaluations), np.asarray(y1)

    return run


def measure(problem: Problem) -> dict[str, np.ndarray]:
    """Evaluations and errors, in rows, by solver."""
    _, exact = by_scipy(problem, "DOP853", 2.3e-14)
    solvers = {
        "Adams": adams(problem),
        "LSODA": functools.partial(by_scipy, problem, "LSODA"),
        "DOP853": functools.partial(by_scipy, problem, "DOP853"),
    }
    rows = {}
    for name, solve in solvers.items():
        results = [solve(tolerance) for tolerance in TOLERANCES]
        rows[name] = np.array([(n, np.max(np.abs(y1 - exact))) for n, y1 in results])
    return rows


def evaluations_at(rows: np.ndarray, error: float) -> float:
    """Evaluations for an error, by a smooth curve: single errors are a matter of luck."""
    fit = np.polyfit(np.log(rows[:, 1]), np.log(rows[:, 0]), 2)
    return float(np.exp(np.polyval(fit, np.log(error))))


def draw(measured: dict[str, dict[str, np.ndarray]]) -> None:
    """A panel for each problem, with one legend."""
    import matplotlib.pyplot as plt  # pyright: ignore[reportMissingImports]
    from matplotlib.ticker import FuncFormatter, NullFormatter  # pyright: ignore[reportMissingImports]

    figure, axes = plt.subplots(1, len(measured), figsize=(11, 3.9), layout="constrained")
    for axis, (title, by_solver) in zip(axes, measured.items(), strict=True):
        for name, rows in by_solver.items():
            color, marker = STYLES[name]
            axis.loglog(*rows.T, color=color, marker=marker, markersize=4, linewidth=1, label=name)
        axis.set_title(title)
        axis.set_xlabel("evaluations of the vector field")
        axis.set_xticks([100, 200, 500, 1000, 2000])
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("error at the end")
    axes[0].legend()
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=150)


def main() -> None:
    """Measure, print what errors cost, and draw."""
    with jax.enable_x64(True):
        measured = {problem.title: measure(problem) for problem in PROBLEMS}
    print("| evaluations for an error of | 1e-4 | 1e-6 | 1e-8 |")
    print("|---|---|---|---|")
    for title, by_solver in measured.items():
        for name, rows in by_solver.items():
            costs = " | ".join(f"{evaluations_at(rows, e):.0f}" for e in (1e-4, 1e-6, 1e-8))
            print(f"| {title}, {name} | {costs} |")
    draw(measured)
    print(f"\nThe figure is {FIGURE}.")


if __name__ == "__main__":
    main()
