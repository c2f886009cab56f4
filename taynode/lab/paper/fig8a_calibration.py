"""Figure 8a: the errors of solves against their tolerances, on regularized dynamics."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..sweep.plan import Job
from ..sweep.results import Result
from . import mnist_sweep
from .arms import arms_of, paired
from .chart import Chart, Line, Panel
from .statistics import differences, in_range, quotients, spread
from .study import AbstractStudy, Claim, judged, Numbers
from .verdicts import number, ratio


TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
EXACT = 1e-12
NUM_SAMPLES = 20


class Calibration(AbstractStudy):
    """MNIST: errors of Dopri5, trained with R_3, trained without, and untrained."""

    name = "fig8a-calibration"
    title = "Error of the solution against the requested tolerance"

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """The runs of the sweep whose errors are measured."""
        every = mnist_sweep.jobs(scale, seeds)
        return [job for job in every if mnist_sweep.CALIBRATION in job.measurements]

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """Errors by arm, `[seed][tolerance]`, and the slope of each on logarithmic axes."""
        del scale
        errors: dict[str, list[list[float]]] = {"untrained": []}
        for arm in paired(arms_of(results)):
            measured = arm.measured(mnist_sweep.CALIBRATION)
            errors[arm.label] = [x["trained"] for x in measured]
            if not arm.order:
                errors["untrained"] = [x["untrained"] for x in measured]
        slopes = {label: [_slope(row) for row in rows] for label, rows in errors.items()}
        return {"tolerances": list(TOLERANCES), "errors": errors, "slopes": slopes}

    def chart(self, numbers: Numbers) -> Chart:
        """Errors over tolerances, a line a seed."""
        tolerances = numbers["tolerances"]
        marks = [Line(tolerances, tolerances, "error = tolerance", -1)]
        for i, (label, rows) in enumerate(numbers["errors"].items()):
            marks += [Line(tolerances, row, "" if j else label, i) for j, row in enumerate(rows)]
        x, y = "tolerance", "error of the solution"
        return Chart([Panel(marks, x=x, y=y, x_log=True, y_log=True)], height=4.0)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Regularized dynamics are solved as accurately as others."""
        slopes, tolerances = numbers["slopes"], numbers["tolerances"]
        # The largest error over its tolerance, for each seed.
        worst = {
            label: [max(quotients(errors, tolerances)) for errors in rows]
            for label, rows in numbers["errors"].items()
        }
        regular = next(label for label in slopes if label.startswith("R_"))
        # Errors below the tolerance on random dynamics do not lower the threshold.
        beyond = [a / max(1.0, b) for a, b in zip(worst[regular], worst["untrained"], strict=True)]
        apart = differences(slopes[regular], slopes["untrained"])
        return [
            judged(
                "Regularization does not make the solver overconfident",
                "in the caption",
                "the largest error at any tolerance, in tolerances: "
                + ", ".join(f"{label} {in_range(x)}" for label, x in worst.items()),
                ratio("largest error over what is allowed once", beyond, at_most=10.0),
                rule="at most 10 tolerances, or 10 times what it is for random dynamics",
            ),
            judged(
                "Errors follow the tolerance as they do for random dynamics",
                "about equally well calibrated",
                "slope of errors over tolerances, on logarithmic axes: "
                + ", ".join(f"{label} {spread(x)}" for label, x in slopes.items()),
                number("difference of slopes", apart, at_least=-0.2, at_most=0.2),
                rule="slopes at most 0.2 apart",
            ),
        ]


def _slope(errors: Sequence[float]) -> float:
    return float(np.polyfit(np.log10(TOLERANCES), np.log10(errors), 1)[0])


def errors_of(directory: Path) -> dict[str, list[float]]:
    """The errors of the model of a run, and of an untrained one."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import jax.tree_util as jtu
    from jaxtyping import Array, Float

    from ..._types import RealScalar, VectorField
    from ..config import SolveConfig
    from ..report.paths import initial_state_of
    from ..training.build import make_solve
    from ..training.keys import Keys
    from ..training.loading import load

    run = load(directory, precision="float64")
    batch = jtu.tree_map(lambda x: x[:NUM_SAMPLES], run.data.test)
    y0 = initial_state_of(run.task, run.model, batch)

    @eqx.filter_jit
    def ends(field: VectorField, tolerance: RealScalar) -> Float[Array, "samples dim"]:
        config = SolveConfig()
        solve = eqx.tree_at(
            lambda solve: (solve.stepsize_controller.rtol, solve.stepsize_controller.atol),
            make_solve(config),
            (tolerance, tolerance),
        )
        return jax.vmap(lambda y: solve(field, y).ys[-1])(y0)

    def errors(field: VectorField) -> list[float]:
        exact = ends(field, jnp.asarray(EXACT))
        distances = (ends(field, jnp.asarray(x)) - exact for x in TOLERANCES)
        # Logarithms are taken of them, so none is zero.
        return [max(float(jnp.sqrt(jnp.mean(x**2))), EXACT**2) for x in distances]

    first = run.task.model(Keys(run.config.seed).model)
    cast = lambda x: x.astype(jnp.float64) if eqx.is_inexact_array(x) else x
    return {
        "trained": errors(run.model.vector_field),
        "untrained": errors(jtu.tree_map(cast, first).vector_field),
    }
