"""`taynode sample` and `taynode density`."""

import json
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ..config import ConfigError, positive
from .loaded import beside, load_run, TaskName


def sample(
    run: Path,
    *,
    num: int = 1000,
    seed: int = 0,
    out: Path | None = None,
    task: TaskName = None,
    json_output: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Draw samples from a trained flow: an array, and a picture of them where one can be drawn.

    Parameters
    ----------
    run
        The directory of a run, or a file with the parameters of one.
    num
        How many samples.
    seed
        Of the samples.
    out
        A file for the array, samples.npy in the run by default; the picture goes next to it.
    task
        The task as module:Class, if it is not a built-in one; this runs its module.
    json_output
        Print JSON, and nothing else.

    """
    positive("num", num)
    from ..report.flows import draw_samples, draw_samples_picture, kind_of, shown_data

    loaded = _flow(run, task)
    model = loaded.model
    drawn, nfe = draw_samples(loaded.task, model, loaded.config.evaluation, num=num, seed=seed)
    out = out or beside(run, "samples.npy")
    import numpy as np

    out.parent.mkdir(parents=True, exist_ok=True)
    np.save(out, drawn)
    told = {"samples": str(out), "nfe": float(nfe.mean())}
    kind = kind_of(model)
    if kind is not None:
        # As many of either, and as many images as can be recognized.
        most = num if kind == "plane" else 64
        data = shown_data(loaded.data.test[:most], kind)
        picture = draw_samples_picture(kind, drawn[:most], data, out.with_suffix(".png"))
        told["picture"] = str(picture)
    _tell(told, json_output)


def density(
    run: Path,
    *,
    points: int = 100,
    out: Path | None = None,
    task: TaskName = None,
    json_output: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Draw the density of a trained flow in the plane next to its data.

    Parameters
    ----------
    run
        The directory of a run, or a file with the parameters of one.
    points
        Of the grid, along each axis.
    out
        The picture, density.png in the run by default.
    task
        The task as module:Class, if it is not a built-in one; this runs its module.
    json_output
        Print JSON, and nothing else.

    """
    positive("points", points)
    from ..report.flows import draw_density, draw_density_picture, draw_samples, NUM_POINTS

    loaded = _flow(run, task)
    model, evaluation = loaded.model, loaded.config.evaluation
    if model.event_shape != (2,):
        raise ConfigError(
            f"{run} is a density on samples of shape {model.event_shape}; only one in the plane "
            "can be drawn. `taynode evaluate` tells its loss, `taynode sample` samples it."
        )
    axis, values = draw_density(model, evaluation, points=points)
    samples, _ = draw_samples(loaded.task, model, evaluation, num=NUM_POINTS)
    import numpy as np

    data = np.asarray(loaded.data.test)[:NUM_POINTS]
    out = out or beside(run, "density.png")
    picture = draw_density_picture(samples, data, axis, values, out)
    integral = float(values.sum() * (axis[1] - axis[0]) ** 2)
    _tell({"picture": str(picture), "integral": integral}, json_output)


def _flow(run: Path, task: TaskName) -> Any:
    loaded = load_run(run, task)
    from ...models import ContinuousFlow

    if not isinstance(loaded.model, ContinuousFlow):
        raise ConfigError(
            f"{run} is a run of {loaded.config.task}, whose model is a "
            f"{type(loaded.model).__name__} and no flow: it has no density."
        )
    return loaded


def _tell(told: dict[str, Any], json_output: bool) -> None:
    if json_output:
        print(json.dumps(told))
        return
    for name, value in told.items():
        if value is not None:
            print(f"{name}: {value:.6g}" if isinstance(value, float) else f"{name}: {value}")
