"""Paths of single samples through a trained model, for the report."""

from typing import Any, Protocol, runtime_checkable

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..._types import Args, Arrays, RealScalar, VectorField, Y
from ...taylor import solution_derivatives
from ...terms import slope_of
from ..config import ConfigError, SolveConfig
from ..tasks.base import AbstractTask
from ..training.build import in_double, make_solve
from ..training.evaluate import Evaluator
from .samples import DEFAULT_ORDER, SampleArrays


NUM_COUNTED = 1000
NUM_PATHS = 24
NUM_TIMES = 101
NUM_DIRECTIONS = 8


@runtime_checkable
class HasInitialState(Protocol):
    """A task whose paths do not begin at the flattened inputs."""

    def initial_state(self, model: eqx.Module, batch: Any) -> Arrays:
        """The initial states of a batch: a pytree of arrays with samples first."""
        ...


@runtime_checkable
class HasVectorField(Protocol):
    """A task whose paths do not follow `model.vector_field`."""

    def vector_field(self, model: eqx.Module) -> VectorField | dfx.AbstractTerm:
        """The vector field of one sample, or its term, with a fixed realization of noise."""
        ...


@runtime_checkable
class HasArguments(Protocol):
    """A task whose vector field has arguments of each sample, such as controls."""

    def arguments(self, batch: Any) -> Any:
        """The arguments of a batch: a pytree of arrays with samples first."""
        ...


def trace(
    task: AbstractTask,
    model: eqx.Module,
    evaluation: SolveConfig,
    train_data: Any,
    test_data: Any,
    *,
    order: int = DEFAULT_ORDER,
    evaluator: Evaluator | None = None,
) -> SampleArrays:
    """The arrays of paths and evaluations in `samples.npz`; see `taynode.lab.report.samples`.

    By default, paths begin at `batch.inputs`, each flattened, and follow `model.vector_field` from
    time 0 to 1. A task changes this by a method `initial_state(model, batch)`, a method
    `vector_field(model)`, a method `arguments(batch)`, or an attribute `interval`, a pair of times.

    **Arguments:**

    - `task`, `model`: the task, and the trained model.
    - `evaluation`: the settings of the solve.
    - `train_data`, `test_data`: pytrees of arrays with samples first. Paths are those of test
        samples.
    - `order`: the highest derivative, K; at least 3, so that runs can be compared.
    - `evaluator`: an evaluator of the same task and settings, if one has been compiled.
    """
    evaluator = evaluator or Evaluator(task, evaluation)
    counts = {
        f"{name}_nfe": np.asarray(
            evaluator.samples(model, data, NUM_COUNTED, split=name).nfe, np.int32
        )
        for name, data in (("train", train_data), ("test", test_data))
    }
    batch = jtu.tree_map(lambda x: x[:NUM_COUNTED], test_data)
    y0 = initial_state_of(task, model, batch)
    chosen = _choose(y0)
    args = task.arguments(batch) if isinstance(task, HasArguments) else None
    y0, args = jtu.tree_map(lambda x: x[chosen], (y0, args))
    paths = _solve(task, model, evaluation, y0, args, max(order, DEFAULT_ORDER))
    labels = getattr(batch, "labels", None)
    if labels is not None and np.issubdtype(np.asarray(labels).dtype, np.integer):
        paths["path_labels"] = np.asarray(labels)[chosen]
    return counts | paths


def initial_state_of(task: AbstractTask, model: eqx.Module, batch: Any) -> Arrays:
    """The initial states of a batch."""
    if isinstance(task, HasInitialState):
        return task.initial_state(model, batch)
    inputs = jnp.asarray(batch.inputs)
    return inputs.reshape(len(inputs), -1)


def vector_field_of(task: AbstractTask, model: Any) -> VectorField | dfx.AbstractTerm:
    """The vector field of one sample, or the term of an equation that is not ordinary."""
    return task.vector_field(model) if isinstance(task, HasVectorField) else model.vector_field


def ordinary_field_of(task: AbstractTask, model: Any) -> VectorField:
    """The vector field, of an ordinary equation only."""
    field = vector_field_of(task, model)
    if isinstance(field, dfx.AbstractTerm):
        raise ConfigError(
            f"Solvers of ordinary equations are compared, and that of {task.name!r} is a "
            "stochastic one."
        )
    return field


def interval_of(task: AbstractTask) -> tuple[float, float]:
    """The interval of time."""
    return getattr(task, "interval", (0.0, 1.0))


def _choose(y0: Arrays) -> np.ndarray:
    """The indices of samples to draw: the first ones or, on a line, evenly spread ones."""
    leaves = jtu.tree_leaves(y0)
    total = len(leaves[0])
    count = min(NUM_PATHS, total)
    if sum(x.size for x in leaves) > total:
        return np.arange(count)
    order = np.argsort(np.asarray(leaves[0]).reshape(-1), kind="stable")
    return order[np.linspace(0, total - 1, count).round().astype(int)]


def _solve(
    task: AbstractTask, model: Any, evaluation: SolveConfig, y0: Arrays, args: Args, order: int
) -> SampleArrays:
    if evaluation.needs_double:
        model, y0, args = in_double((model, y0, args))
    field, (t0, t1) = vector_field_of(task, model), interval_of(task)
    dtype = jnp.result_type(*jtu.tree_leaves(y0))
    times = jnp.linspace(t0, t1, NUM_TIMES, dtype=dtype)
    # Both come from a single solve, so the path that is drawn is that of the solver.
    dense = dfx.SubSaveAt(ts=times)
    steps = dfx.SubSaveAt(steps=True, fn=lambda t, y, args: None)

    @eqx.filter_jit
    def run(field: Any, y0: Arrays, args: Args) -> tuple[Array, Array, Array]:
        term = field if isinstance(field, dfx.AbstractTerm) else dfx.ODETerm(field)
        slope = slope_of(term).vf

        def each(y0, args):
            solve = make_solve(evaluation)
            # The first and the last time may be rounded into the interval, never out of it.
            solution = solve(
                field, y0, args, t0=times[0], t1=times[-1], saveat=dfx.SaveAt(subs=[dense, steps])
            )
            states = solution.ys[0]
            derivatives = jax.vmap(lambda t, y: _sizes(slope, t, y, args, order), out_axes=-1)
            flat = jax.vmap(lambda y: ravel_pytree(y)[0])(states)
            return flat, derivatives(times, states), solution.ts[1]

        return jax.vmap(each)(y0, args)

    states, derivative, step_times = (np.asarray(x) for x in run(field, y0, args))
    # diffrax fills unused entries with infinity.
    step_times = np.where(np.isfinite(step_times), step_times, np.nan)
    used = np.isfinite(step_times).any(axis=0)
    states = np.where(np.isfinite(states), states, np.nan)
    return {
        "path_times": np.asarray(times),
        **_principal(states),
        "path_derivative": np.moveaxis(derivative, 1, 0).astype(np.float32),
        "step_times": step_times[:, used],
    }


def _sizes(
    field: VectorField, t: RealScalar, y: Y, args: Args, order: int
) -> Float[Array, "order"]:
    """The root mean square of each derivative."""
    derivatives = solution_derivatives(field, t, y, args, order=order)
    flat = [ravel_pytree(derivative)[0] for derivative in derivatives]
    return jnp.stack([jnp.sqrt(jnp.mean(x**2)) for x in flat])


def _principal(states: np.ndarray) -> SampleArrays:
    """Coordinates along the principal directions of all points, if there are more than two."""
    size = states.shape[-1]
    points = states.reshape(-1, size).astype(float)
    points = points[np.isfinite(points).all(axis=-1)]
    mean, basis = np.zeros(size), np.eye(size)
    if size > 2 and len(points):
        mean = points.mean(axis=0)
        basis = np.linalg.svd(points - mean, full_matrices=False)[2][:NUM_DIRECTIONS]
        # The sign of a direction is arbitrary: the largest component of each is positive.
        largest = np.take_along_axis(basis, np.abs(basis).argmax(axis=1)[:, None], axis=1)
        basis = basis * np.sign(largest)
    return {
        "path_states": ((states - mean) @ basis.T).astype(np.float32),
        "path_mean": mean.astype(np.float32),
        "path_basis": basis.astype(np.float32),
        "path_variance": np.asarray(points.var(axis=0).sum() if len(points) else 0.0),
    }
