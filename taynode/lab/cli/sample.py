"""`taynode sample` and `taynode density`."""

import json
from pathlib import Path

from ..config import ConfigError, positive
from .loaded import beside, load_run, RunPath, Seed, TaskName
from .tables import JsonOutput


def sample(
    run: RunPath,
    *,
    num: int = 1000,
    seed: Seed = 0,
    out: Path | None = None,
    task: TaskName = None,
    json_output: JsonOutput = False,
) -> None:
    """Draw samples from a trained flow: an array, and a picture if they can be shown.

    Parameters
    ----------
    num
        Number of samples.
    out
        File of the array; samples.npy in the run by default. The picture is written next to it.

    """
    positive("num", num)
    loaded = _load_flow(run, task)
    import numpy as np

    from ..report.flows import draw_samples, draw_samples_picture, kind_of, shown_data

    model = loaded.model
    drawn, nfe = draw_samples(loaded.task, model, loaded.config.evaluation, num=num, seed=seed)
    out = out or beside(run, "samples.npy")
    out.parent.mkdir(parents=True, exist_ok=True)
    np.save(out, drawn)
    result: dict[str, str | float] = {"samples": str(out), "nfe": float(nfe.mean())}
    kind = kind_of(model)
    if kind is not None:
        # Images have to be large enough to be recognized.
        most = num if kind == "plane" else 64
        data = shown_data(loaded.data.test[:most], kind)
        picture = draw_samples_picture(kind, drawn[:most], data, out.with_suffix(".png"))
        result["picture"] = str(picture)
    _print(result, json_output)


def density(
    run: RunPath,
    *,
    points: int = 100,
    seed: Seed = 0,
    out: Path | None = None,
    task: TaskName = None,
    json_output: JsonOutput = False,
) -> None:
    """Draw the density of a trained flow in the plane next to its data.

    Parameters
    ----------
    points
        Number of grid points along each axis.
    out
        File of the picture; density.png in the run by default.

    """
    positive("points", points)
    loaded = _load_flow(run, task)
    model, evaluation = loaded.model, loaded.config.evaluation
    if model.event_shape != (2,):
        raise ConfigError(
            f"{run} is a density on samples of shape {model.event_shape}, but only a density in "
            "the plane can be drawn. Use `taynode evaluate` for its loss, or `taynode sample`."
        )
    import numpy as np

    from ..report.flows import draw_density, draw_density_picture, draw_samples, NUM_POINTS

    axis, values = draw_density(model, evaluation, points=points, seed=seed)
    samples, _ = draw_samples(loaded.task, model, evaluation, num=NUM_POINTS, seed=seed)
    data = np.asarray(loaded.data.test)[:NUM_POINTS]
    out = out or beside(run, "density.png")
    picture = draw_density_picture(samples, data, axis, values, out)
    integral = float(values.sum() * (axis[1] - axis[0]) ** 2)
    _print({"picture": str(picture), "integral": integral}, json_output)


def _load_flow(run: Path, task: str | None):
    loaded = load_run(run, task)
    from ...models import ContinuousFlow

    if not isinstance(loaded.model, ContinuousFlow):
        raise ConfigError(
            f"{run} is a run of {loaded.config.task}, whose model is a "
            f"{type(loaded.model).__name__} and no flow: it has no density."
        )
    return loaded


def _print(result: dict[str, str | float], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name}: {value:.6g}" if isinstance(value, float) else f"{name}: {value}")
