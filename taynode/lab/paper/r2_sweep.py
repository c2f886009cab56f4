"""R_2 of many weights on PhysioNet and MINIBOONE; several figures use these runs."""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..config import RegularizerConfig, SolveConfig
from ..sweep.plan import EvaluationConfig, Job
from .arms import defaults_of, jobs_of
from .statistics import rounded
from .study import Numbers


WEIGHTS = {
    "physionet": (1.0, 3.0, 10.0, 30.0, 100.0),
    "miniboone": (0.03, 0.1, 0.3, 1.0, 10.0),
}
TIGHT = EvaluationConfig(
    "1.4e-8",
    SolveConfig(rtol=1.4e-8, atol=1.4e-8),
    precision="float64",
    samples=200,
)
LOOSE = EvaluationConfig(
    "1e-5", SolveConfig(rtol=1e-5, atol=1e-5), precision="float64", samples=200
)
# At the one of the two tolerances that is not that of the task.
EVALUATIONS = {"physionet": LOOSE, "miniboone": TIGHT}
# The paths of the first seed are drawn, without regularization and for one weight.
PATHS = "latent-paths"
DRAWN = 30.0


def regularized(task: str, weight: float) -> RegularizerConfig:
    """R_2; on PhysioNet with a random time for each path of a batch."""
    return RegularizerConfig("r2", weight, per_row=task != "miniboone")


def jobs(task: str, scale: str, seeds: Sequence[int]) -> list[Job]:
    """Unregularized, and all weights; one of them at `smoke`."""
    is_smoke = scale == "smoke"
    weights = (DRAWN,) if is_smoke else WEIGHTS[task]
    arms = [RegularizerConfig(), *(regularized(task, weight) for weight in weights)]
    evaluations = () if is_smoke else (EVALUATIONS[task],)
    of_task = functools.partial(measurements, task)
    return jobs_of(defaults_of(task, scale), arms, seeds, evaluations, of_task)


def evaluation_at(task: str, scale: str) -> str | None:
    """The name of the evaluation at the paper's tolerance; `None` for that of the task."""
    extra = EVALUATIONS[task] if scale != "smoke" else None
    return extra.name if extra is TIGHT else None


def measurements(task: str, arm: RegularizerConfig, seed: int) -> tuple[str, ...]:
    """The names of the measurements of a run."""
    drawn = RegularizerConfig(), regularized(task, DRAWN)
    return (PATHS,) if task == "physionet" and seed == 0 and arm in drawn else ()


def paths_of(directory: Path) -> Numbers:
    """The paths of a run, with the solver's steps."""
    from ..report.samples import read_samples

    arrays = read_samples(directory)
    states = arrays["path_states"]
    paths = {
        "times": arrays["path_times"].tolist(),
        # Two directions are drawn. The length is measured in all directions that were kept.
        "states": states[..., :2].tolist(),
        "bends": _bends(states),
        "steps": [row[np.isfinite(row)].tolist() for row in arrays["step_times"]],
    }
    return rounded(paths)


def _bends(states: np.ndarray) -> float:
    """The length of a path over the distance of its ends, as a median over paths."""
    length = np.linalg.norm(np.diff(states, axis=1), axis=-1).sum(axis=1)
    distance = np.linalg.norm(states[:, -1] - states[:, 0], axis=-1)
    return float(np.median(length / np.maximum(distance, 1e-12)))
