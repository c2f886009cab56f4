"""The flow of the paper's first figure."""

import diffrax as dfx
import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from .._types import VectorField
from .solve import Solve
from .vector_fields import glorot_dense, TimeMLP


Points = Float[Array | np.ndarray, "num 1"]


class ToyFlow(eqx.Module):
    """The paper's one-dimensional toy: the flow of a perceptron of 50 hidden units.

    **Arguments:**

    - `width`: the size of the hidden layer.
    - `key`: a random key for the weights.
    """

    vector_field: VectorField

    def __init__(self, width: int = 50, *, key: PRNGKeyArray):
        self.vector_field = TimeMLP((1, width, 1), jax.nn.sigmoid, dense=glorot_dense, key=key)

    def __call__(
        self, x: Points, solve: Solve | None = None, *, key: PRNGKeyArray | None = None
    ) -> tuple[Points, dfx.Solution]:
        """Solve for a batch of points jointly, and return the points at time 1 and the solution."""
        solution = (solve or Solve())(self.vector_field, x, key=key)
        return solution.ys[-1], solution
