"""What a trained flow becomes with half of its training steps once more."""

import dataclasses
from pathlib import Path

from ..files import Json
from ..sweep.plan import Measurements
from .sampling import quality_of, SAMPLING
from .table_rows import FAILED


TRAINED_ON, REFLOW = "flow trained on", "reflow"
EASED = "eased with R_2 to the evaluations of reflow"
NAMES = (TRAINED_ON, REFLOW, EASED)
RECIPES = "recipes for flows"


def recipes_of(directory: Path) -> Json:
    """Loss and evaluations on test data, and how good samples are, for each recipe.

    Easing has the evaluations that reflow reached as its budget, so that samples are compared at
    equal evaluations.
    """
    from ..training.eased import evaluator_of, tested
    from ..training.easing import ease_run, EaseConfig, reflow, train_on
    from ..training.failures import TrainingFailed
    from ..training.loading import load

    run = load(directory)
    config = EaseConfig(regularizer="r2", seed=run.config.seed)
    evaluator = evaluator_of(run)
    found = {}
    for name, recipe in ((TRAINED_ON, train_on), (REFLOW, reflow)):
        point = recipe(run, config)
        found[name] = tested(run, evaluator, point) | {SAMPLING: quality_of(run, point.model)}
    budgeted = dataclasses.replace(config, budget=found[REFLOW]["test_nfe"])
    try:
        point = ease_run(run, budgeted, directory / "eased-flow").points[-1]
        found[EASED] = tested(run, evaluator, point) | {SAMPLING: quality_of(run, point.model)}
    except TrainingFailed as failure:
        found[EASED] = {FAILED: str(failure)}
    return found


MEASUREMENTS: Measurements = {RECIPES: recipes_of}
