"""A loss without labels."""

from collections.abc import Callable
from typing import TypeAlias

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import PRNGKeyArray, PyTree

from .._types import Arrays, RealScalar
from .training import LossFn


# From a model, a batch and a key to the outputs and the solution.
Predict: TypeAlias = Callable[[PyTree, PyTree, PRNGKeyArray], tuple[Arrays, dfx.Solution]]


def matching(model: PyTree, predict: Predict) -> LossFn:
    """A loss for `tn.ease` without labels: it compares outputs with those of the given model.

    ```python
    loss_fn = tn.matching(model, predict)
    front = tn.ease(model, loss_fn, batches, valid, optimizer, steps=1000, key=key)
    front.within(0, atol=0.01)
    ```

    The loss is the mean squared difference, divided by the variance of the given model's outputs in
    the batch. So it has no unit, and the given model's loss is 0: set the allowed loss with `atol`
    or `within_atol`.

    **Arguments:**

    - `model`: the given model.
    - `predict`: a function from a model, a batch and a key to the outputs, any pytree, and the
        solution of a regularized `tn.diffeqsolve`. Outputs may be the states at several times, so
        that paths are matched, too.
    """

    def loss_fn(other: PyTree, batch: PyTree, key: PRNGKeyArray) -> tuple[RealScalar, dfx.Solution]:
        wanted = jax.lax.stop_gradient(predict(model, batch, key)[0])
        outputs, solution = predict(other, batch, key)
        pairs = list(zip(jtu.tree_leaves(outputs), jtu.tree_leaves(wanted), strict=True))
        squares = jnp.stack([jnp.mean(jnp.abs(x - y) ** 2) for x, y in pairs])
        variances = jnp.stack([jnp.var(y) for _, y in pairs])
        variance = eqx.error_if(
            jnp.sum(variances),
            jnp.sum(variances) == 0,
            "`tn.matching` divides by the variance of the given model's outputs in a batch, which "
            "is zero: the outputs do not differ. Pass batches of several samples.",
        )
        return jnp.sum(squares) / variance, solution

    return loss_fn
