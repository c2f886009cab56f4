"""`taynode advise`."""

import json
import sys
from pathlib import Path

from ..config import ConfigError, positive
from .loaded import load_run, RunPath, TaskName
from .tables import JsonOutput, print_rows


def advise(
    run: RunPath,
    *,
    rtol: float = 1e-3,
    atol: float | None = None,
    samples: int = 64,
    plot: Path | None = None,
    task: TaskName = None,
    json_output: JsonOutput = False,
) -> None:
    """Find the cheapest solver and tolerance for a trained model, and the order to regularize.

    Each solver is tried with tolerances from loose to tight. Its true error is the distance from a
    much tighter solve.

    Parameters
    ----------
    rtol
        Relative error to allow in the final state.
    atol
        Absolute error to allow; that of --rtol by default.
    samples
        Number of training samples to try solvers on.
    plot
        File for a plot of evaluations against true errors, such as advice.png.

    """
    positive("samples", samples)
    if not 0 < rtol < 1:
        raise ConfigError(f"`rtol` must be between 0 and 1, got {rtol!r}.")
    atol = rtol if atol is None else atol
    positive("atol", atol)
    loaded = load_run(run, task, double=rtol < 1e-5)
    import jax
    from rich.console import Console

    from ...advice import advise as find_advice
    from ..report.paths import HasArguments, initial_state_of, interval_of, ordinary_field_of
    from ..training.build import make_solve

    if isinstance(loaded.task, HasArguments):
        raise ConfigError(
            f"`taynode advise` cannot solve {loaded.task.name!r}, whose vector field has arguments "
            "of each sample. Call `tn.advise` for single samples."
        )
    field = ordinary_field_of(loaded.task, loaded.model)
    batch = jax.tree.map(lambda x: x[:samples], loaded.data.train)
    quiet = json_output or not sys.stderr.isatty()
    with Console(stderr=True, quiet=quiet).status("Solving ...") as status:
        advice = find_advice(
            field,
            initial_state_of(loaded.task, loaded.model, batch),
            *interval_of(loaded.task),
            rtol=rtol,
            atol=atol,
            present=make_solve(loaded.config.evaluation),
            on_progress=lambda name: status.update(f"Solving: {name} ..."),
        )
    names = ("solver", "rtol", "atol", "nfe", "error", "worst", "seconds")
    rows = [{name: getattr(found, name) for name in names} for found in advice.cheapest]
    if plot is not None:
        import matplotlib

        matplotlib.use("Agg")
        advice.plot().figure.savefig(plot, dpi=150, bbox_inches="tight")
    if json_output:
        known = {"solvers": rows, "order": advice.order, "recommendation": advice.recommendation}
        print(json.dumps(known | {"is_stiff": advice.stiffness.is_stiff}))
        return
    print_rows(rows, f"{run}: cheapest setting of each solver; errors in units of what is allowed")
    print(f"{advice.stiffness}\n{advice.audit}\n{advice.recommendation}")
    if plot is not None:
        print(f"Plot: {plot}")
