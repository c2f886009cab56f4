"""How solvers do on a trained model: evaluations, rejected steps and true errors."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from ..files import Json


if TYPE_CHECKING:
    from ...advice.problem import InitialValues
    from ..training.loading import LoadedRun


SOLVING = "solving"
NUM_SAMPLES = 64
# Solvers that a model was not trained against, beside that of its evaluations.
UNTRAINED = ("tsit5", "bosh3")
# The true error at which the cheapest settings of models are compared, and solvers to try.
ACCURACY = 1e-4
TRIED = ("bosh3", "tsit5", "dopri5")


def solving_of(directory: Path) -> Json:
    """Measurements of a run, for the first test samples, each solved alone in double precision.

    - `solvers`: for each solver at the tolerance of evaluations, `nfe`, the share of `rejected`
        steps, and `error`, the root mean square of the true error in units of the tolerance.
    - `cheapest`: the solver and tolerance with the fewest evaluations whose true error is at most
        `ACCURACY`, and these evaluations; 0 evaluations if no solver is so accurate. Tolerances are
        tried as in `tn.advise`.

    The state of a flow includes its log-densities, as in training; a latent path is that of the
    mean, to its end.
    """
    import numpy as np

    from ...advice.measure import cheapest_tolerance, measure, work_precision
    from ...advice.problem import adaptive, solve_exactly
    from ...registry import SOLVERS
    from ..training.loading import load

    run = load(directory, precision="float64")
    config = run.config.evaluation
    problem = _problem_of(run)
    # Solvers are compiled once for all tolerances, and the exact solution serves both accuracies.
    exact = solve_exactly(problem, min(config.rtol, ACCURACY), min(config.atol, ACCURACY))
    of_use, usual = (
        dataclasses.replace(exact, rtol=rtol, atol=atol)
        for rtol, atol in ((config.rtol, config.atol), (ACCURACY, ACCURACY))
    )
    found, courses = {}, []
    for name in dict.fromkeys((config.solver, *UNTRAINED, *TRIED)):
        solver, most = SOLVERS.find(name)(), config.max_steps
        if name in TRIED:
            courses.append(work_precision(problem, usual, solver, max_steps=most, timed=0))
        if name in (config.solver, *UNTRAINED):
            # As arrays of the same type as above, since a solver is compiled for it.
            tolerances = np.float64(config.rtol), np.float64(config.atol)
            solve = adaptive(solver, *tolerances, max_steps=most)
            at = measure(problem, of_use, solve, timed=0)
            found[name] = {"nfe": at.nfe, "rejected": at.rejected, "error": at.error}
    accurate = [x for x in map(cheapest_tolerance, courses) if x is not None]
    best = min(accurate, key=lambda x: x.nfe, default=None)
    return {
        "solvers": found,
        "cheapest": {
            "solver": "" if best is None else best.solver,
            "rtol": None if best is None else best.rtol,
            "nfe": 0.0 if best is None else best.nfe,
        },
    }


def _problem_of(run: "LoadedRun") -> "InitialValues":
    """The equation that a model is evaluated with, from the first test samples."""
    import jax
    import jax.numpy as jnp

    from ...advice.problem import InitialValues
    from ...quadrature import PerRow
    from ..report.paths import initial_state_of, interval_of, ordinary_field_of
    from ..tasks.density import AbstractDensity
    from ..training.keys import Keys

    batch = jax.tree.map(lambda x: x[:NUM_SAMPLES], run.data.test)
    interval = interval_of(run.task)
    if isinstance(run.task, AbstractDensity):
        # One sample at a time, with one draw of the noise of the divergence for all.
        alone = batch[:, None]
        noise = run.model.divergence.draw(alone[0], Keys(run.config.seed).density(0))
        y0s = alone, jnp.zeros((len(batch), 1), alone.dtype)
        return InitialValues(run.model.field, y0s, *interval, PerRow(noise))
    field = ordinary_field_of(run.task, run.model)
    return InitialValues(field, initial_state_of(run.task, run.model, batch), *interval, None)
