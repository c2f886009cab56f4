"""How solvers do on a trained model: evaluations, rejected steps and true errors."""

import dataclasses
from pathlib import Path

from ..files import Json


SOLVING = "solving"
NUM_SAMPLES = 64
# Solvers that a model was not trained against, beside that of its evaluations.
OTHERS = ("tsit5", "bosh3")
# The true error at which the cheapest settings of models are compared.
ACCURACY = 1e-4


def solving_of(directory: Path) -> Json:
    """Measurements of a run, for the first test samples.

    - `solvers`: for each solver at the tolerance of evaluations, `nfe`, the share of `rejected`
        steps, and `error`, the root mean square of the true error in units of the tolerance.
    - `cheapest`: the solver and tolerance with the fewest evaluations whose true error is at most
        `ACCURACY`, and these evaluations; 0 evaluations if no solver is so accurate.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from ...advice import advise
    from ...advice.problem import InitialValues, solve_exactly
    from ..report.paths import initial_state_of, interval_of, vector_field_of
    from ..training.build import make_solve
    from ..training.loading import load

    run = load(directory, precision="float64")
    config = run.config.evaluation
    batch = jax.tree.map(lambda x: x[:NUM_SAMPLES], run.data.test)
    field = vector_field_of(run.task, run.model)
    y0s, (t0, t1) = initial_state_of(run.task, run.model, batch), interval_of(run.task)
    exact = solve_exactly(InitialValues(field, y0s, t0, t1, None), config.rtol, config.atol)

    def measured(solver: str) -> Json:
        solve = make_solve(dataclasses.replace(config, solver=solver))
        sol = jax.jit(jax.vmap(lambda y0: solve(field, y0, t0=t0, t1=t1)))(y0s)
        errors = exact.error(jax.tree.map(lambda y: y[:, -1], sol.ys))
        attempts = jnp.sum(sol.stats["num_steps"])
        return {
            "nfe": float(jnp.mean(sol.stats["nfe"])),
            "rejected": float(jnp.sum(sol.stats["num_rejected_steps"]) / attempts),
            "error": float(np.sqrt(np.mean(errors**2))),
        }

    best = advise(field, y0s, t0, t1, rtol=ACCURACY, atol=ACCURACY).best
    return {
        "solvers": {name: measured(name) for name in dict.fromkeys((config.solver, *OTHERS))},
        "cheapest": {
            "solver": "" if best is None else best.solver,
            "rtol": None if best is None else best.rtol,
            "nfe": 0.0 if best is None else best.nfe,
        },
    }
