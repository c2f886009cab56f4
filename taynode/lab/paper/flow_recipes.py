"""What a trained flow becomes with half of its training steps once more."""

import dataclasses
import functools
from pathlib import Path

from ..files import Json
from ..sweep.plan import Measurements
from .sampling import quality_of, SAMPLING
from .table_rows import FAILED


# The budget of easing, as a share of the evaluations of the given model.
SHARE = 0.7
TRAINED_ON, REFLOW, EASED = "flow trained on", "reflow", f"eased to {SHARE:g} with R_2"


def _measure(directory: Path, recipe: str) -> Json:
    """Loss and evaluations on test data, and how good samples are."""
    from ..training.eased import evaluator_of, tested
    from ..training.easing import ease_run, EaseConfig, reflow, train_on
    from ..training.failures import TrainingFailed
    from ..training.loading import load
    from ..training.records import RunDirectory

    run = load(directory)
    config = EaseConfig(regularizer="r2", seed=run.config.seed)
    if recipe == TRAINED_ON:
        point = train_on(run, config)
    elif recipe == REFLOW:
        point = reflow(run, config)
    else:
        budget = SHARE * RunDirectory(directory).rows()[-1]["test_nfe"]
        try:
            config = dataclasses.replace(config, budget=budget)
            front = ease_run(run, config, directory / "eased-flow")
        except TrainingFailed as failure:
            return {FAILED: str(failure)}
        point = front.points[-1]
    return tested(run, evaluator_of(run), point) | {SAMPLING: quality_of(run, point.model)}


MEASUREMENTS: Measurements = {
    name: functools.partial(_measure, recipe=name) for name in (TRAINED_ON, REFLOW, EASED)
}
