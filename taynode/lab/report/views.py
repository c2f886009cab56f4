"""Paths of several runs in common coordinates."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...registry import derivative_order
from .groups import Group
from .runs import StoredRun
from .samples import DEFAULT_ORDER


NEEDED = ("path_times", "path_states", "path_derivative", "step_times")


class Path(NamedTuple):
    """The paths of a group: those of one of its runs."""

    group: Group
    times: np.ndarray
    states: np.ndarray
    derivative: np.ndarray
    steps: np.ndarray
    labels: np.ndarray | None

    @property
    def is_line(self) -> bool:
        """Whether the state is a number, which is drawn over time."""
        return self.states.shape[-1] == 1


class View(NamedTuple):
    """Paths with states of at most two numbers, in the same coordinates for all groups.

    - `order`: the order of the derivative, the same for all groups.
    - `share`: the share of the variance of all states that is drawn, if known.
    - `left_out`: the groups without such paths.
    """

    paths: list[Path]
    order: int
    share: float | None
    left_out: list[Group]


def view_paths(groups: Sequence[Group]) -> View | None:
    """The paths of one run of each group."""
    found = [(group, next(filter(_has_paths, group.runs), None)) for group in groups]
    size = next((_state_size(run) for _, run in found if run is not None), None)
    if size is None:
        return None
    # States of different sizes have no common axes: those of the first size are drawn.
    chosen = [(group, run) for group, run in found if run is not None and _state_size(run) == size]
    runs = [run for _, run in chosen]
    order = _common_order(runs)
    states, share = _seen_together(runs)
    paths = [
        Path(
            group,
            run.samples["path_times"].astype(float),
            seen,
            run.samples["path_derivative"][order - 1].astype(float),
            run.samples["step_times"].astype(float),
            run.samples.get("path_labels"),
        )
        for (group, run), seen in zip(chosen, states, strict=True)
    ]
    drawn = [group for group, _ in chosen]
    return View(paths, order, share, [group for group in groups if group not in drawn])


def _has_paths(run: StoredRun) -> bool:
    """Whether all arrays are there, with shapes that agree."""
    if any(name not in run.samples for name in NEEDED):
        return False
    times, states, derivative, steps = (run.samples[name] for name in NEEDED)
    return (
        (times.ndim, states.ndim, derivative.ndim, steps.ndim) == (1, 3, 3, 2)
        and derivative.shape[1:] == states.shape[:2] == (len(steps), len(times))
        and len(times) > 1
        and len(derivative) > 0
        and bool(np.isfinite(states).all(axis=-1).any())
    )


def _state_size(run: StoredRun) -> int:
    basis = run.samples.get("path_basis")
    return run.samples["path_states"].shape[-1] if basis is None else basis.shape[-1]


def _common_order(runs: list[StoredRun]) -> int:
    """The order of the penalty, if all runs have this derivative, or else the highest order."""
    names = [str(run.regularizer.get("name", "none")) for run in runs]
    penalized = {order for name in names if (order := derivative_order(name)) is not None}
    known = min(len(run.samples["path_derivative"]) for run in runs)
    wanted = penalized.pop() if len(penalized) == 1 else DEFAULT_ORDER
    return min(wanted, known)


def _seen_together(runs: list[StoredRun]) -> tuple[list[np.ndarray], float | None]:
    """States in at most two dimensions, common to all runs, and their share of the variance."""
    states = [run.samples["path_states"].astype(float) for run in runs]
    spanned = all({"path_basis", "path_mean"} <= set(run.samples) for run in runs)
    if _state_size(runs[0]) <= 2 or not spanned:
        return [x[..., :2] for x in states], None
    bases = [run.samples["path_basis"].astype(float) for run in runs]
    means = [run.samples["path_mean"].astype(float) for run in runs]
    center = np.mean(means, axis=0)
    # All points lie in the span of all directions, which is small.
    shared = np.linalg.qr(np.concatenate([*bases, *(m[None] - center for m in means)]).T)[0]
    views = [
        (x @ basis + mean - center) @ shared
        for x, basis, mean in zip(states, bases, means, strict=True)
    ]
    points = [view.reshape(-1, view.shape[-1]) for view in views]
    points = [x[np.isfinite(x).all(axis=-1)] for x in points]
    together = np.concatenate(points)
    sizes, directions = np.linalg.svd(together - together.mean(axis=0), full_matrices=False)[1:]
    share = None
    if all("path_variance" in run.samples for run in runs):
        # The variance that each run left out is added.
        kept = (sizes**2).sum()
        lost = sum(
            len(x) * max(0.0, float(run.samples["path_variance"]) - x.var(axis=0).sum())
            for run, x in zip(runs, points, strict=True)
        )
        share = float((sizes[:2] ** 2).sum() / max(kept + lost, 1e-300))
    return [view @ directions[:2].T for view in views], share
