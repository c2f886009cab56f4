"""Classification by a neural ODE."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from .._types import VectorField
from .solve import Solve
from .vector_fields import Dense, paper_dense, TimeMLP, with_zeros


class NeuralODEClassifier(eqx.Module):
    """A neural ODE of flattened inputs from time 0 to 1, a sigmoid, and a linear map to logits.

    The paper's model for MNIST is `NeuralODEClassifier(784, 100, 10, key=key)`: 158,568 parameters
    in the vector field and 7,850 in the map.

    **Arguments:**

    - `in_size`: the size of a flattened input.
    - `width`: the size of the hidden layer of the vector field.
    - `num_classes`: the number of classes.
    - `vector_field`: a vector field instead of the default, a `TimeMLP` of that width.
    - `augment`: the number of zeros that are appended to inputs, for the vector field and the
        linear map.
    - `key`: a random key for the weights.
    """

    vector_field: VectorField
    head: Dense
    augment: int = eqx.field(static=True)

    def __init__(
        self,
        in_size: int,
        width: int,
        num_classes: int,
        *,
        vector_field: VectorField | None = None,
        augment: int = 0,
        key: PRNGKeyArray,
    ):
        field_key, head_key = jr.split(key)
        if vector_field is None:
            sizes = (in_size + augment, width, in_size + augment)
            vector_field = TimeMLP(sizes, jax.nn.sigmoid, activate_input=True, key=field_key)
        self.vector_field = vector_field
        self.head = paper_dense(in_size + augment, num_classes, key=head_key)
        self.augment = augment

    def __call__(
        self,
        x: Float[Array, "num ..."],
        solve: Solve | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "num classes"], dfx.Solution]:
        """Compute the logits of a batch, solved jointly, and the solution.

        **Arguments:**

        - `x`: the inputs, of any shape.
        - `solve`: the solver and its settings; by default Dopri5 with tolerances of 1e-5.
        - `key`: a random key for the penalty.
        """
        solution = (solve or Solve())(self.vector_field, self.initial_state(x), key=key)
        return self.head(jax.nn.sigmoid(solution.ys[-1])), solution

    def initial_state(self, x: Float[Array, "num ..."]) -> Float[Array, "num size"]:
        """The flattened inputs, with the zeros."""
        return with_zeros(x.reshape(len(x), -1), self.augment)
