"""Samples of a trained flow and, in the plane, its density."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import ArrayLike

from ...models import ContinuousFlow
from ..config import SolveConfig
from ..training.build import make_solve
from ..training.keys import Keys
from .samples import SampleArrays, sheet


BATCH = 500
BOUND = 4.5
NUM_SHOWN = 36
NUM_POINTS = 4000
GRID = 80


def draw_samples(
    task: object, model: ContinuousFlow, evaluation: SolveConfig, *, num: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Samples of a flow, as the task shows them, and the number of evaluations of each."""
    solve, batch = make_solve(evaluation), min(BATCH, num)

    @eqx.filter_jit
    def draw(model, key):
        def one(key):
            samples, solution = model.sample(key, 1, solve)
            return samples[0], solution.stats["nfe"]

        return jax.vmap(one)(jr.split(key, batch))

    keys = Keys(seed)
    parts = [jax.device_get(draw(model, keys.samples(i))) for i in range(-(-num // batch))]
    samples, nfe = (np.concatenate(xs)[:num] for xs in zip(*parts, strict=True))
    shown = getattr(task, "to_shown", None)
    return np.asarray(shown(samples)) if shown else samples, nfe


def draw_density(
    model: ContinuousFlow, evaluation: SolveConfig, *, points: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """An axis, and the density of a flow on the square of the axis."""
    solve = make_solve(evaluation)
    axis = np.linspace(-BOUND, BOUND, points, dtype=model.dtype)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

    @eqx.filter_jit
    def log_prob(model, x, key):
        each = lambda x, key: model.log_prob(x[None], solve, key=key)[0][0]
        return jax.vmap(each)(x, jr.split(key, len(x)))

    keys = Keys(seed)
    padded = np.concatenate([grid, np.zeros((-len(grid) % BATCH, 2), grid.dtype)])
    batches = enumerate(padded.reshape(-1, BATCH, 2))
    parts = [np.asarray(log_prob(model, x, keys.density(i))) for i, x in batches]
    return axis, np.exp(np.concatenate(parts)[: len(grid)]).reshape(points, points)


def flow_arrays(
    task: object, model: ContinuousFlow, evaluation: SolveConfig, test_data: ArrayLike, *, seed: int
) -> SampleArrays:
    """The arrays of a flow in `samples.npz`; see `taynode.lab.report.samples`."""
    kind = kind_of(model)
    if kind is None:
        return {}
    num = NUM_POINTS if kind == "plane" else NUM_SHOWN
    samples, _ = draw_samples(task, model, evaluation, num=num, seed=seed)
    arrays = {f"{kind}_samples": samples, f"{kind}_data": shown_data(test_data, kind)[:num]}
    if kind == "plane":
        axis, density = draw_density(model, evaluation, points=GRID, seed=seed)
        arrays |= {"density_axis": axis, "density": density.astype(np.float32)}
    return arrays


def kind_of(model: ContinuousFlow) -> str | None:
    """The way to show samples: as points in the plane, as images, or `None`."""
    shape = model.event_shape
    if shape == (2,):
        return "plane"
    return "image" if len(shape) == 3 and shape[-1] == 1 else None


def shown_data(data: ArrayLike, kind: str) -> np.ndarray:
    """Data in the form of samples."""
    data = np.asarray(data)
    return data if kind == "plane" else np.asarray(data[..., None], np.float32) / 255


def draw_samples_picture(kind: str, samples: np.ndarray, data: np.ndarray, file: Path) -> Path:
    """Data and samples side by side."""
    draw = {"plane": _scatter, "image": _sheet}[kind]
    return _panels(file, {"data": (draw, data), "samples": (draw, samples)})


def draw_density_picture(
    samples: np.ndarray, data: np.ndarray, axis: np.ndarray, density: np.ndarray, file: Path
) -> Path:
    """Data, density and samples side by side."""
    panels = {
        "data": (_scatter, data),
        "density": (_density, (axis, density)),
        "samples": (_scatter, samples),
    }
    return _panels(file, panels)


def _panels(file: Path, panels: dict[str, tuple[Any, Any]]) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(panels), 4.2), layout="constrained")
    for axes, (name, (draw, content)) in zip(
        figure.subplots(1, len(panels)), panels.items(), strict=True
    ):
        draw(axes, content)
        axes.set(title=name, xticks=[], yticks=[])
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    return file


def _scatter(axes: Any, points: np.ndarray) -> None:
    axes.hist2d(*points.T, bins=120, range=[(-BOUND, BOUND)] * 2, cmap="magma")
    axes.set_aspect("equal")


def _density(axes: Any, content: tuple[np.ndarray, np.ndarray]) -> None:
    axis, values = content
    axes.pcolormesh(axis, axis, values, cmap="magma", shading="nearest", rasterized=True)
    axes.set(xlim=(-BOUND, BOUND), ylim=(-BOUND, BOUND), aspect="equal")


def _sheet(axes: Any, images: np.ndarray) -> None:
    axes.imshow(sheet(images), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
