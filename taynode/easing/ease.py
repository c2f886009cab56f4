"""Making a trained model cheap."""

import os
from collections.abc import Callable, Iterable

import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from .data import as_batch_fn, as_list, BatchFn, Keys
from .front import Front, Point
from .goal import Goal, message
from .plan import next_phase
from .progress import EasingProgress
from .run import Run
from .store import digest, Store
from .training import controlled, LossFn, Optimizer, TrainState


def ease(
    model: PyTree,
    loss_fn: LossFn,
    batches: BatchFn | Iterable[PyTree],
    valid: PyTree | list[PyTree],
    optimizer: Optimizer,
    *,
    steps: int,
    key: PRNGKeyArray,
    nfe: float | int | None = None,
    within: float | int | None = None,
    within_atol: float | int | None = None,
    evaluate: LossFn | None = None,
    path: str | os.PathLike[str] | None = None,
    on_progress: Callable[[EasingProgress], object] | None = None,
) -> Front:
    """Make a trained model cheap to solve.

    First the weight of the penalty rises and the model follows: each point of this path has fewer
    evaluations and a larger loss. Then points are refitted with a cosine-decayed learning rate,
    while `tn.Budget` keeps their evaluations.

    ```python
    front = tn.ease(model, loss_fn, batches, valid, optax.adam(1e-3), steps=1000, key=key, nfe=40)
    print(front)
    model = front.at(nfe=40).model
    ```

    **Arguments:**

    - `model`: the trained model, a pytree. Its floating-point arrays are trained.
    - `loss_fn`: a function from a model, a batch and a key to the loss and the solution of a
        regularized `tn.diffeqsolve`, or of its `jax.vmap`. If the model solves several equations
        in turn, return a list of their solutions: evaluations and penalties are added. The loss
        has no penalty in it.
        `tn.matching` makes one that needs no labels. With `throw=False` in the solve, steps whose
        solve fails are left out, as are those whose loss is not finite.
    - `batches`: a function `(step, key) -> batch`; or a list of batches, used in turn; or any
        iterable of batches.
    - `valid`: a batch of validation data, or a list of batches. Evaluations and losses in the
        front are means over them. The first is also solved about fifty times in each refit.
    - `optimizer`: of optax, with the learning rate of the model's training, and without decay.
    - `steps`: the total number of training steps.
    - `key`: a random key.
    - `nfe`: the evaluations to allow.
    - `within`, `within_atol`: how much the loss may exceed that of the given model: relatively,
        absolutely, or both. `ease` searches for the cheapest such model. Without `nfe` and these,
        it refits points along the whole path.
    - `evaluate`: a function like `loss_fn` for validation data, if the model is used with another
        solver or tolerance than it is trained with. Its solution needs no penalty.
    - `path`: a directory. After a kill, the same call continues from there, with the same result
        bit for bit. `batches` must then be a function or a list.
    - `on_progress`: a function that is called with a `EasingProgress`, such as `print`.

    **Returns:**

    A `tn.Front`.
    """
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1, got {steps}.")
    goal = Goal(nfe, within, within_atol)
    run = Run(
        loss_fn,
        loss_fn if evaluate is None else evaluate,
        as_batch_fn(batches, is_resumable=path is not None),
        as_list(valid),
        optimizer,
        Keys(key),
        steps,
        on_progress,
    )
    state = TrainState.start(model, optimizer, controlled(0.0))
    if path is None:
        points = _run(run, goal, state, None)
    else:
        settings = {"steps": steps, "nfe": nfe, "within": within, "within_atol": within_atol}
        settings |= {"key": np.asarray(jr.key_data(key)).tolist(), "model": digest(model)}
        points = _run(run, goal, state, Store(path, settings))
    return Front(tuple(points), message(points, goal))


def _run(run: Run, goal: Goal, state: TrainState, store: Store | None) -> list[Point]:
    """All points, continued from what is stored."""
    saved = None if store is None else store.load(state)
    if saved is not None:
        points, scale, phase, step, state = saved
    else:
        points = [run.point("given", 0, state)]
        _check_given(points[0])
        if store is not None:
            store.save_point(0, points[0])
        if goal.is_met_by(points[0]):
            return points
        scale, step, phase = run.scale(state.model), 0, None
    while True:
        if phase is None or step == phase.last:
            phase = next_phase(points, goal, steps=run.steps, scale=scale)
            if phase is None:
                return points
            state = run.start(phase, points, state)
        state, step = run.train(phase, state, step)
        if step == phase.last:
            points.append(run.point(phase.kind, step, state))
            if store is not None:
                store.save_point(len(points) - 1, points[-1])
        if store is not None:
            store.save_state(len(points), scale, phase, step, state)


def _check_given(point: Point) -> None:
    if not point.is_finite:
        raise ValueError(
            f"The given model has a validation loss of {point.loss} and {point.nfe} evaluations. "
            "Both must be finite: does its solve fail?"
        )
