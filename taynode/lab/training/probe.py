"""The evaluations that a model would need in use, measured while it trains."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..config import SolveConfig
from ..tasks.base import AbstractTask, Samples
from .build import make_solve
from .step import make_evaluation, Probe


# The evaluations of samples differ by a third of their mean. A training step on a fixed grid is
# cheap, so that a probe of many samples would be a large part of it.
ADAPTIVE_SAMPLES, FIXED_SAMPLES = 128, 32


def make_probe(task: AbstractTask, training: SolveConfig, evaluation: SolveConfig) -> Probe:
    """A function `(is_due, model, batch, key) -> nfe`.

    It solves the first samples of a training batch as an evaluation does: each of them alone, with
    the solver and the tolerance of evaluations. If no measurement is due, it solves nothing and
    returns NaN.
    """
    num_samples = ADAPTIVE_SAMPLES if training.steps is None else FIXED_SAMPLES
    evaluate = make_evaluation(task, make_solve(evaluation), double=evaluation.needs_double)

    def probe(
        is_due: Bool[Array, ""], model: eqx.Module, batch: Samples, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        few = jtu.tree_map(lambda x: x[:num_samples], batch)

        def measure() -> Float[Array, ""]:
            evaluated, _ = evaluate(model, few, key)
            return jnp.mean(jnp.asarray(evaluated.nfe, float))

        return jax.lax.cond(is_due, measure, lambda: jnp.full((), jnp.nan))

    return probe
