"""Classification by a neural ODE."""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import PRNGKeyArray

from .._types import VectorField
from .solve import Solve
from .vector_fields import Dense, paper_dense, TimeMLP


class NeuralODEClassifier(eqx.Module):
    """Flattened inputs flow for one unit of time; a linear map of the sigmoid tells the class.

    The paper's model for MNIST is `NeuralODEClassifier(784, 100, 10, key=key)`: 158,568 parameters
    in the vector field and 7,850 in the map.

    **Arguments:**

    - `in_size`: of the flattened input.
    - `width`: of the vector field's hidden layer.
    - `num_classes`: how many.
    - `vector_field`: another one, instead of the perceptron of that width.
    - `key`: a random key for the weights.
    """

    vector_field: VectorField
    head: Dense

    def __init__(
        self,
        in_size: int,
        width: int,
        num_classes: int,
        *,
        vector_field: VectorField | None = None,
        key: PRNGKeyArray,
    ):
        field_key, head_key = jr.split(key)
        if vector_field is None:
            sizes = (in_size, width, in_size)
            vector_field = TimeMLP(sizes, jax.nn.sigmoid, activate_input=True, key=field_key)
        self.vector_field = vector_field
        self.head = paper_dense(in_size, num_classes, key=head_key)

    def __call__(
        self, x: Any, solve: Solve | None = None, *, key: PRNGKeyArray | None = None
    ) -> tuple[Any, dfx.Solution]:
        """The logits of a batch, solved jointly, and the solution.

        **Arguments:**

        - `x`: inputs, along a first axis.
        - `solve`: how to solve; with Dopri5 at a tolerance of 1e-5 by default.
        - `key`: for regularizers that draw something.
        """
        y0 = x.reshape(len(x), -1)
        solution = (solve or Solve())(self.vector_field, y0, key=key)
        return self.head(jax.nn.sigmoid(solution.ys[-1])), solution
