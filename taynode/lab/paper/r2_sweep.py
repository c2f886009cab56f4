"""R_2 of many weights on PhysioNet and MINIBOONE; several figures use these runs."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..config import RegularizerConfig, SolveConfig
from ..sweep.plan import EvaluationConfig, Job


WEIGHTS = {
    "physionet": (1.0, 3.0, 10.0, 30.0, 100.0),
    "miniboone": (0.03, 0.1, 0.3, 1.0, 10.0),
}
TIGHT = EvaluationConfig(
    "1.4e-8",
    SolveConfig(rtol=1.4e-8, atol=1.4e-8, max_steps=4096),
    precision="float64",
    samples=200,
)
LOOSE = EvaluationConfig(
    "1e-5", SolveConfig(rtol=1e-5, atol=1e-5), precision="float64", samples=200
)
# At the one of the two tolerances that the task's own settings do not have.
EVALUATIONS = {"physionet": LOOSE, "miniboone": TIGHT}
# The runs whose paths are drawn: unregularized, and of one weight, for the first seed.
PATHS = "latent-paths"
DRAWN = 30.0


def regularized(task: str, weight: float) -> RegularizerConfig:
    """R_2; on PhysioNet at a random time for each of the many paths of a batch."""
    return RegularizerConfig("r2", weight, per_row=task != "miniboone")


def jobs(task: str, scale: str, seeds: Sequence[int]) -> list[Job]:
    """Unregularized, and all weights; one of them at `smoke`."""
    from ..tasks.names import find_task

    defaults = find_task(task).defaults(scale)
    smoke = scale == "smoke"
    weights = (DRAWN,) if smoke else WEIGHTS[task]
    arms = [RegularizerConfig(), *(regularized(task, weight) for weight in weights)]
    return [
        Job(
            dataclasses.replace(defaults, regularizer=arm, seed=seed),
            () if smoke else (EVALUATIONS[task],),
            measurements(task, arm, seed),
        )
        for seed in seeds
        for arm in arms
    ]


def evaluation_at(task: str, scale: str) -> str | None:
    """The evaluation at the paper's tolerance; none if it is the task's own, or not made."""
    extra = EVALUATIONS[task] if scale != "smoke" else None
    return extra.name if extra is TIGHT else None


def measurements(task: str, arm: RegularizerConfig, seed: int) -> tuple[str, ...]:
    """What else is measured of a run."""
    drawn = RegularizerConfig(), regularized(task, DRAWN)
    return (PATHS,) if task == "physionet" and seed == 0 and arm in drawn else ()


def paths_of(directory: Path) -> dict[str, Any]:
    """The paths that a run has drawn, and where its solver stepped."""
    import numpy as np

    from ..report.samples import read_samples

    arrays = read_samples(directory)
    states = arrays["path_states"]
    return {
        "times": np.round(arrays["path_times"], 4).tolist(),
        # Two directions are drawn; the length is of all that were kept.
        "states": np.round(states[..., :2], 4).tolist(),
        "bends": _bends(states),
        "steps": [row[np.isfinite(row)].tolist() for row in np.round(arrays["step_times"], 4)],
    }


def _bends(states: Any) -> float:
    """The median over paths of length over distance of the ends."""
    import numpy as np

    length = np.linalg.norm(np.diff(states, axis=1), axis=-1).sum(axis=1)
    distance = np.linalg.norm(states[:, -1] - states[:, 0], axis=-1)
    return float(np.median(length / np.maximum(distance, 1e-12)))
