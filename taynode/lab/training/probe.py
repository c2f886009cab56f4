"""The evaluations that a model would need in use, measured while it trains."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ...groups import grouped
from ..config import SolveConfig
from ..tasks.base import AbstractTask, Samples
from .build import make_solve
from .step import make_evaluation, Probe


# The evaluations of samples differ by a third of their mean, so many samples are better. But where
# training is cheap beside a probe, a large one would take a large part of the time: if only the
# probe needs double precision, and if training is on a fixed grid.
USUAL_SAMPLES, DOUBLE_SAMPLES, FIXED_SAMPLES = 128, 64, 32


def make_probe(
    task: AbstractTask, training: SolveConfig, evaluation: SolveConfig, *, mesh: Mesh | None = None
) -> Probe:
    """A function `(is_due, model, batch, key) -> nfe`.

    It solves the first samples of a training batch as an evaluation does: each of them alone, with
    the solver and the tolerance of evaluations. If no measurement is due, it solves nothing and
    returns NaN. The devices of `mesh` share the
    samples.
    """
    if training.steps is not None:
        num_samples = FIXED_SAMPLES
    elif evaluation.needs_double and not training.needs_double:
        num_samples = DOUBLE_SAMPLES
    else:
        num_samples = USUAL_SAMPLES
    if mesh is not None:
        num_samples = max(1, num_samples // mesh.size)
    evaluate = make_evaluation(task, make_solve(evaluation), double=evaluation.needs_double)

    def probe(
        model: eqx.Module, batch: Samples, is_due: Bool[Array, ""], *, key: PRNGKeyArray
    ) -> Float[Array, "1"]:
        few = jtu.tree_map(lambda x: x[:num_samples], batch)

        def measure() -> Float[Array, ""]:
            evaluated, _ = evaluate(model, few, key)
            return jnp.mean(jnp.asarray(evaluated.nfe, float))

        return jax.lax.cond(is_due, measure, lambda: jnp.full((), jnp.nan))[None]

    on_devices = probe if mesh is None else grouped(probe, mesh)
    return lambda is_due, model, batch, key: jnp.mean(on_devices(model, batch, is_due, key=key))
