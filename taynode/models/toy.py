"""The flow of the paper's first figure."""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from .._types import VectorField
from .solve import Solve
from .vector_fields import glorot_dense, TimeMLP


class ToyFlow(eqx.Module):
    """The paper's one-dimensional toy: the flow of a perceptron of 50 hidden units.

    **Arguments:**

    - `width`: of the hidden layer.
    - `key`: a random key for the weights.
    """

    vector_field: VectorField

    def __init__(self, width: int = 50, *, key: PRNGKeyArray):
        self.vector_field = TimeMLP((1, width, 1), jax.nn.sigmoid, dense=glorot_dense, key=key)

    def __call__(
        self, x: Any, solve: Solve | None = None, *, key: PRNGKeyArray | None = None
    ) -> tuple[Any, dfx.Solution]:
        """Where a batch of points arrives, and the solution."""
        solution = (solve or Solve())(self.vector_field, x, key=key)
        return solution.ys[-1], solution
