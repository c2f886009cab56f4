"""The record of a finished run for the page: paths and evaluations of single samples."""

from pathlib import Path

from ...models import ContinuousFlow, LatentODE
from ...registry import derivative_order
from ..training.running import Training
from .flows import flow_arrays
from .paths import trace
from .samples import DEFAULT_ORDER, write_samples
from .series import series_arrays


def record_samples(training: Training, directory: Path) -> None:
    """Write `samples.npz` of a run; for `on_finish` of `taynode.lab.train`."""
    config = training.config
    arrays = trace(
        training.task,
        training.final_model,
        config.evaluation,
        training.train_data,
        training.test_data,
        order=derivative_order(config.regularizer.name) or DEFAULT_ORDER,
        evaluator=training.evaluator,
    )
    more = {ContinuousFlow: flow_arrays, LatentODE: series_arrays}.get(type(training.final_model))
    if more is not None:
        of_test = training.final_model, config.evaluation, training.test_data
        arrays |= more(training.task, *of_test, seed=config.seed)
    write_samples(directory, arrays)
